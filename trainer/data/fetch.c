/* fetch.c - one file from the first address that gives it. */
#include "trainer/data/fetch.h"

#include "common/clock.h"
#include "common/fsutil.h"
#include "trainer/data/md5.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

struct fetch_limits fetch_limits_default(int64_t lock_ms)
{
    return (struct fetch_limits){.bytes_max = 64 << 20, .connect_s = 20, .stall_s = 30, .lock_ms = lock_ms};
}

/* A transfer into the .part file. */
struct transfer {
    CURL *easy;
    int fd;
    int64_t have, max; /* bytes in the file */
    bool begun;        /* the first bytes of the body have come */
    bool too_large;
    int write_errno;
};

/* A server that does not resume sends all: then what we have goes. */
static bool begin_body(struct transfer *t)
{
    long status = 0;

    t->begun = true;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (t->have && status == 200) {
        t->have = 0;
        if (ftruncate(t->fd, 0) || lseek(t->fd, 0, SEEK_SET)) {
            t->write_errno = errno;
            return false;
        }
    }
    return true;
}

static size_t take(char *bytes, size_t one, size_t n, void *arg)
{
    struct transfer *t = arg;

    (void)one; /* is 1 */
    if (!t->begun && !begin_body(t))
        return CURL_WRITEFUNC_ERROR;
    if (t->have + (int64_t)n > t->max) {
        t->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    if (fs_write_all(t->fd, bytes, n)) {
        t->write_errno = errno;
        return CURL_WRITEFUNC_ERROR;
    }
    t->have += (int64_t)n;
    return n;
}

static int set_up(struct transfer *t, const struct fetch *f, const char *url)
{
    const char *follow = strncmp(url, "https:", 6) == 0 ? "https" : "http,https";
    CURL *e = t->easy;

    return curl_easy_setopt(e, CURLOPT_URL, url) ||
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") ||
           curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L) ||
           curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)FETCH_REDIRECTS_MAX) ||
           curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, follow) ||
           curl_easy_setopt(e, CURLOPT_FAILONERROR, 1L) || curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) ||
           curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)f->limits.connect_s) ||
           curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)FETCH_STALL_BYTES) ||
           curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)f->limits.stall_s) ||
           curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)f->limits.bytes_max) ||
           curl_easy_setopt(e, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->have) ||
           curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take) || curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
}

static int judge(const struct transfer *t, CURLcode code, const char *url, const char *part, struct err *err)
{
    long status = 0;

    if (code == CURLE_OK)
        return 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (t->write_errno)
        return err_errno(err, ERR_FATAL, t->write_errno, "cannot write %s", part);
    if (t->too_large || code == CURLE_FILESIZE_EXCEEDED)
        return err_set(err, ERR_INVALID, "%s: larger than %" PRId64 " bytes", url, t->max);
    if (code == CURLE_HTTP_RETURNED_ERROR)
        return err_set(err,
                       status == 404   ? ERR_NOT_FOUND
                       : status >= 500 ? ERR_TRANSIENT
                                       : ERR_INVALID,
                       "%s: the server answered %ld", url, status);
    if (code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_UNSUPPORTED_PROTOCOL)
        return err_set(err, ERR_INVALID, "%s: redirected %s", url,
                       code == CURLE_TOO_MANY_REDIRECTS ? "too often" : "to an address that is not https");
    return err_set(err, ERR_TRANSIENT, "%s: %s", url, curl_easy_strerror(code));
}

/* Into `fd`, behind the `have` bytes that it holds. *ret_refused: the server would not go on from there. */
static int transfer(const struct fetch *f, const char *url, const char *part, int fd, int64_t have,
                    bool *ret_refused, struct err *err)
{
    struct transfer t = {.easy = curl_easy_init(), .fd = fd, .have = have, .max = f->limits.bytes_max};
    long status = 0;

    if (!t.easy || set_up(&t, f, url)) {
        curl_easy_cleanup(t.easy);
        return err_set(err, ERR_FATAL, "cannot set up a transfer");
    }
    CURLcode code = curl_easy_perform(t.easy);
    (void)curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &status);
    *ret_refused = have && (status == 416 || code == CURLE_RANGE_ERROR);
    int rc = judge(&t, code, url, part, err);
    curl_easy_cleanup(t.easy);
    return rc;
}

/* The checksum of a whole file. */
static int sum_of(const char *path, int fd, char out[static MD5_TEXT_BYTES], struct err *err)
{
    uint8_t bytes[16384];
    struct md5 m;
    ssize_t n;
    off_t at = 0;

    md5_begin(&m);
    for (; (n = pread(fd, bytes, sizeof(bytes), at)) > 0; at += n)
        md5_add(&m, bytes, (size_t)n);
    if (n < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot read %s", path);
    md5_text(&m, out);
    return 0;
}

/* The .part file becomes the file, for good. */
static int finish(const struct fetch *f, const char *part, int fd, struct err *err)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s", f->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    if (fsync(fd) || rename(part, f->path))
        return err_errno(err, ERR_FATAL, errno, "cannot write %s", f->path);
    cleanup_close int dir = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fsync(dir))
        return err_errno(err, ERR_FATAL, errno, "cannot write %s", folder);
    return 0;
}

/* The bytes that are missing behind those that lie there, and the sum of all. A part that cannot be gone on from, or that
 * was of another file, begins again. */
static int complete(const struct fetch *f, const char *url, const char *part, int fd,
                    char sum[static MD5_TEXT_BYTES], struct err *err)
{
    int64_t have = lseek(fd, 0, SEEK_END);

    for (;;) {
        bool refused = false;
        if (have < 0 || (!have && (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))))
            return err_errno(err, ERR_FATAL, errno, "cannot write %s", part);
        int rc = transfer(f, url, part, fd, have, &refused, err);
        if (rc && !refused)
            return -1;
        if (!rc && sum_of(part, fd, sum, err))
            return -1;
        if (!have || (!rc && strcmp(sum, f->md5) == 0))
            return rc;
        have = 0;
    }
}

static int from_one(const struct fetch *f, const char *url, const char *part, struct err *err)
{
    cleanup_close int fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    char sum[MD5_TEXT_BYTES];

    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %s", part);
    /* It may be whole already: the process died before it said so. */
    if (sum_of(part, fd, sum, err) || (strcmp(sum, f->md5) != 0 && complete(f, url, part, fd, sum, err)))
        return -1;
    if (strcmp(sum, f->md5) == 0)
        return finish(f, part, fd, err);
    unlink(part);
    return err_set(err, ERR_INVALID, "%s: MD5 %s, expected %s: damaged on its way, or another file", url, sum,
                   f->md5);
}

/* One process at a time; the lock goes with the descriptor. */
static int lock(const char *path, int64_t wait_ms, struct err *err)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    char name[PATH_MAX];
    int64_t end = clock_mono_ms() + wait_ms;
    const char *slash = strrchr(path, '/');

    int len = snprintf(name, sizeof(name), "%.*s.fetch.lock", slash ? (int)(slash - path + 1) : 0, path);
    if (len >= (int)sizeof(name))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", path);
    cleanup_close int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %s", name);
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_errno(err, ERR_FATAL, errno, "cannot lock %s", name);
        if (clock_mono_ms() >= end)
            return err_set(err, ERR_TRANSIENT, "%s: another process has held it for %" PRId64 " ms", name,
                           wait_ms);
        nanosleep(&pause, NULL);
    }
    return TAKE_FD(fd);
}

int fetch(const struct fetch *f, struct err *err)
{
    char part[PATH_MAX];

    if (snprintf(part, sizeof(part), "%s.part", f->path) >= (int)sizeof(part))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", f->path);
    cleanup_close int held = lock(f->path, f->limits.lock_ms, err);
    if (held < 0)
        return -1;
    if (access(f->path, F_OK) == 0)
        return 0;
    for (int i = 0; i < FETCH_MIRRORS_MAX && f->urls[i]; i++) {
        if (from_one(f, f->urls[i], part, err) == 0)
            return 0;
        if (err->kind == ERR_FATAL) /* a full disk is full for every mirror */
            return -1;
    }
    return -1;
}
