/* events.c - write a TensorBoard event file: name it, buffer records, flush whole records to disk. */
#include "trainer/events/events.h"

#include "common/fsutil.h"
#include "common/memory.h"
#include "common/sv.h"
#include "trainer/events/event_encode.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SUFFIX ".trainer" /* other programs use the same names without it */

enum { NAME_TRIES = 10000, HOST_BYTES = 65 };

struct events {
    char path[PATH_MAX];
    int fd;
    off_t written; /* whole records on disk */
    int64_t flush_ms;
    bool removed;
    int64_t oldest_mono_ms; /* when the first pending record was added */
    struct clock clock;
    struct buf pending;
    char **tags; /* seen, hence with metadata on disk or pending */
    size_t tags_len;
};

static double wall_seconds(const struct clock *c)
{
    return (double)c->wall_ms(c->ctx) / 1000.0;
}

/* Lock an event file of this program, as its writer does. True: no other process has the lock, and the file
 * still exists. On file systems without locks a writer needs none, and no file is removed. */
static bool lock(int fd, bool writes)
{
    struct stat st;

    return (flock(fd, LOCK_EX | LOCK_NB) == 0 || (writes && errno != EWOULDBLOCK)) && fstat(fd, &st) == 0 &&
           S_ISREG(st.st_mode) && st.st_nlink > 0;
}

/* Remove files of ended runs: this program's, in the folder itself, that no process writes. */
static int remove_ended(struct events *e, const char *log_dir, struct err *err)
{
    cleanup_closedir DIR *dir = opendir(log_dir);

    if (!dir)
        return err_errno(err, ERR_FATAL, errno, "%s", log_dir);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return errno ? err_errno(err, ERR_FATAL, errno, "%s", log_dir) : 0;
        if (!strstr(entry->d_name, "tfevents") || !sv_ends(sv_from(entry->d_name), SUFFIX))
            continue;
        cleanup_close int fd =
            openat(dirfd(dir), entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || !lock(fd, false))
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno != ENOENT)
            return err_errno(err, ERR_FATAL, errno, "%s/%s", log_dir, entry->d_name);
        e->removed = true;
    }
}

static void host_part(const char *host, char out[static HOST_BYTES])
{
    snprintf(out, HOST_BYTES, "%s", host && *host ? host : "localhost");
    for (char *p = out; *p; p++) {
        if (*p == '/' || (unsigned char)*p <= ' ')
            *p = '_';
    }
}

/* Two runs with the same second and pid (a restarted container) must not share a file: use the first free
 * number. */
static int create_file(struct events *e, const struct events_options *o, struct err *err)
{
    char host[HOST_BYTES];
    int64_t seconds = o->clock.wall_ms(o->clock.ctx) / 1000;

    host_part(o->host, host);
    for (int n = 0; n < NAME_TRIES; n++) {
        int len = snprintf(e->path, sizeof(e->path),
                           "%s/events.out.tfevents.%010" PRId64 ".%s.%" PRId64 ".%d" SUFFIX, o->log_dir,
                           seconds, host, o->pid, n);
        if (len < 0 || len >= (int)sizeof(e->path))
            return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%s", o->log_dir);
        e->fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (e->fd >= 0 && lock(e->fd, true))
            return 0;
        if (e->fd >= 0) /* another run that starts now has removed it */
            close(TAKE_FD(e->fd));
        else if (errno != EEXIST)
            return err_errno(err, ERR_FATAL, errno, "%s", e->path);
    }
    return err_errno(err, ERR_FATAL, EEXIST, "%s", e->path);
}

static void events_free(struct events *e)
{
    if (e->fd >= 0)
        close(e->fd);
    for (size_t i = 0; i < e->tags_len; i++)
        free(e->tags[i]);
    free(e->tags);
    buf_release(&e->pending);
    free(e);
}

static int start(struct events *e, const struct events_options *o, struct err *err)
{
    if (fs_mkdirs(o->log_dir, err) < 0 || (o->fresh && remove_ended(e, o->log_dir, err) < 0) ||
        create_file(e, o, err) < 0)
        return -1;
    double now = wall_seconds(&e->clock);
    int rc = event_encode_header(now, &e->pending, err);
    /* twice: readers treat the first session start in a folder as its begin, and purge only at later ones */
    for (int i = 0; i < 2 && rc == 0 && o->purge_step; i++)
        rc = event_encode_restart(now, o->purge_step, &e->pending, err);
    if (rc == 0 && events_flush(e, err) == 0)
        return 0;
    unlink(e->path);
    return -1;
}

struct events *events_open(const struct events_options *o, struct err *err)
{
    struct events *e = memory_must(calloc(1, sizeof(*e)));

    e->fd = -1;
    e->flush_ms = o->flush_ms;
    e->clock = o->clock;
    e->pending = (struct buf)BUF_INIT(EVENTS_PENDING_BYTES);
    if (start(e, o, err) < 0) {
        events_free(e);
        return NULL;
    }
    return e;
}

static bool tag_seen(const struct events *e, const char *tag)
{
    for (size_t i = 0; i < e->tags_len; i++) {
        if (strcmp(e->tags[i], tag) == 0)
            return true;
    }
    return false;
}

static void tag_add(struct events *e, const char *tag)
{
    e->tags = memory_must(reallocarray(e->tags, e->tags_len + 1, sizeof(*e->tags)));
    e->tags[e->tags_len++] = memory_strdup(tag);
}

int events_flush(struct events *e, struct err *err)
{
    if (!e->pending.len)
        return 0;
    if (fs_write_all(e->fd, e->pending.data, e->pending.len) < 0) {
        int code = errno;
        /* Readers would stop at an incomplete record: truncate the file. */
        if (ftruncate(e->fd, e->written) < 0 || lseek(e->fd, e->written, SEEK_SET) < 0)
            return err_errno(err, ERR_FATAL, code, "%s: cut record at %jd", e->path, (intmax_t)e->written);
        return err_errno(err, ERR_FATAL, code, "%s", e->path);
    }
    e->written += (off_t)e->pending.len;
    buf_clear(&e->pending);
    return 0;
}

int events_tick(struct events *e, struct err *err)
{
    if (!e->pending.len || e->clock.mono_ms(e->clock.ctx) - e->oldest_mono_ms < e->flush_ms)
        return 0;
    return events_flush(e, err);
}

/* Flush if the record does not fit; fail if it still does not fit. */
static int append(struct events *e, const struct buf *record, struct err *err)
{
    if (record->len > e->pending.max - e->pending.len && events_flush(e, err) < 0)
        return -1;
    if (!e->pending.len)
        e->oldest_mono_ms = e->clock.mono_ms(e->clock.ctx);
    return buf_append(&e->pending, record->data, record->len, err);
}

/* Remember a tag only when its record has been added. */
static int add(struct events *e, const char *tag, int64_t step, bool scalar, const float *values, size_t n,
               struct err *err)
{
    cleanup_buf struct buf record = BUF_INIT(EVENTS_PENDING_BYTES);
    const struct event_value at = {wall_seconds(&e->clock), step, tag, !tag_seen(e, tag)};

    if ((scalar ? event_encode_scalar(&at, *values, &record, err)
                : event_encode_histogram(&at, values, n, &record, err)) ||
        append(e, &record, err))
        return -1;
    if (at.first)
        tag_add(e, tag);
    return events_tick(e, err);
}

int events_scalar(struct events *e, const char *tag, int64_t step, float value, struct err *err)
{
    return add(e, tag, step, true, &value, 1, err);
}

int events_histogram(struct events *e, const char *tag, int64_t step, const float *values, size_t n,
                     struct err *err)
{
    return add(e, tag, step, false, values, n, err);
}

int events_close(struct events *e, struct err *err)
{
    if (!e)
        return 0;
    int rc = events_flush(e, err);
    if (close(TAKE_FD(e->fd)) < 0 && rc == 0)
        rc = err_errno(err, ERR_FATAL, errno, "%s", e->path);
    events_free(e);
    return rc;
}

bool events_removed(const struct events *e)
{
    return e->removed;
}
