/* fetch.c - download one file from the first mirror that serves it with the expected checksum. */
#include "trainer/data/fetch.h"

#include "common/clock.h"
#include "common/fsutil.h"
#include "host/rank_state.h"
#include "trainer/data/md5.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { LOCK_TICK_MS = 50 };

struct fetch_limits fetch_limits_default(int64_t lock_ms)
{
    return (struct fetch_limits){.bytes_max = 64 << 20,
                                 .connect_s = 20,
                                 .stall_s = 30,
                                 .rounds = 3,
                                 .pause_ms = 1000,
                                 .lock_ms = lock_ms};
}

/* The checksum of a whole file. */
static int sum_of(const char *path, int fd, char out[static MD5_TEXT_BYTES], struct err *err)
{
    uint8_t bytes[16384];
    struct md5 m;
    ssize_t n;
    off_t at = 0;

    md5_begin(&m);
    for (; (n = pread(fd, bytes, sizeof(bytes), at)) > 0; at += n) {
        md5_add(&m, bytes, (size_t)n);
        rank_state_alive();
    }
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
        struct transfer t = {.url = url, .part = part, .fd = fd, .have = have, .limits = &f->limits};
        if (have < 0 || (!have && (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))))
            return err_errno(err, ERR_FATAL, errno, "cannot write %s", part);
        int rc = transfer(&t, err);
        if (rc && !t.refused)
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
    cleanup_close int fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    char sum[MD5_TEXT_BYTES];

    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %s", part);
    /* It may be whole already: the process died before it said so. */
    if (sum_of(part, fd, sum, err) || (strcmp(sum, f->md5) != 0 && complete(f, url, part, fd, sum, err)))
        return -1;
    if (strcmp(sum, f->md5) == 0)
        return finish(f, part, fd, err);
    unlink(part);
    return err_set(err, ERR_INVALID, "%s: MD5 %s, expected %s: damaged in transfer, or a different file", url,
                   sum, f->md5);
}

static bool stopped(const struct fetch_limits *l, struct err *err)
{
    if (!l->stopped || !l->stopped(l->stop_ctx))
        return false;
    err_errno(err, ERR_TRANSIENT, EINTR, "the download was stopped");
    return true;
}

/* True: stopped meanwhile. */
static bool pause_for(const struct fetch_limits *l, int64_t ms, struct err *err)
{
    const struct timespec tick = {.tv_nsec = 50000000};
    int64_t end = clock_mono_ms() + ms;

    while (!stopped(l, err)) {
        if (clock_mono_ms() >= end)
            return false;
        nanosleep(&tick, NULL);
    }
    return true;
}

/* One process at a time; the lock goes with the descriptor. */
static int lock(const char *path, const struct fetch_limits *l, struct err *err)
{
    char name[PATH_MAX];
    int64_t end = clock_mono_ms() + l->lock_ms;
    const char *slash = strrchr(path, '/');

    int len = snprintf(name, sizeof(name), "%.*s.fetch.lock", slash ? (int)(slash - path + 1) : 0, path);
    if (len >= (int)sizeof(name))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", path);
    cleanup_close int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %s", name);
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_errno(err, ERR_FATAL, errno, "cannot lock %s", name);
        if (clock_mono_ms() >= end)
            return err_set(err, ERR_TRANSIENT, "%s: another process has held it for %" PRId64 " ms", name,
                           l->lock_ms);
        if (pause_for(l, LOCK_TICK_MS, err))
            return -1;
    }
    return TAKE_FD(fd);
}

/* Of the failures of several addresses the one that says most about what to do. */
static int weight(const struct err *e)
{
    switch (e->kind) {
    case ERR_FATAL:
        return 4;
    case ERR_TRANSIENT: /* another try may meet a better server */
        return 3;
    case ERR_NOT_FOUND:
        return e->code == ENETUNREACH ? 0 : 1;
    case ERR_NONE:
        return -1;
    case ERR_INVALID:
    case ERR_CONFLICT:
    case ERR_TIMEOUT:
    case ERR_PEER:
        break;
    }
    return 2;
}

/* Each address once. A full disk is full for all of them. */
static int one_round(const struct fetch *f, const char *part, struct err *err)
{
    struct err worst = {0};

    for (int i = 0; i < FETCH_MIRRORS_MAX && f->urls[i]; i++) {
        struct err e = {0};
        if (from_one(f, f->urls[i], part, &e) == 0)
            return 0;
        if (weight(&e) > weight(&worst))
            worst = e;
        if (e.kind == ERR_FATAL || stopped(&f->limits, &worst))
            break;
    }
    *err = worst;
    return -1;
}

static bool may_pass(const struct err *e)
{
    return e->code != EINTR &&
           (e->kind == ERR_TRANSIENT || (e->kind == ERR_NOT_FOUND && e->code == ENETUNREACH));
}

int fetch(const struct fetch *f, struct err *err)
{
    char part[PATH_MAX];
    int64_t pause_ms = f->limits.pause_ms;

    if (snprintf(part, sizeof(part), "%s.part", f->path) >= (int)sizeof(part))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", f->path);
    cleanup_close int held = lock(f->path, &f->limits, err);
    if (held < 0)
        return -1;
    if (access(f->path, F_OK) == 0)
        return 0;
    for (int round = 1;; round++, pause_ms *= 2) {
        if (one_round(f, part, err) == 0)
            return 0;
        if (round >= f->limits.rounds || !may_pass(err) || pause_for(&f->limits, pause_ms, err))
            return -1;
    }
}
