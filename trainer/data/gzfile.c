/* gzfile.c - read a file through a buffer, and inflate it with zlib when it begins with gzip's magic. */
#include "trainer/data/gzfile.h"
#include "common/memory.h"
#include "host/rank_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { IN_BYTES = 1 << 16, GZIP_WINDOW_BITS = 15 + 16, INFLATE_RATIO_MAX = 1032 };

struct gzfile {
    const char *path;
    int fd;
    uint64_t size;
    bool gzip;
    bool between;   /* gzip: after a member, whose trailer is checked */
    uint64_t taken; /* gzip: bytes of the file read so far */
    z_stream z;
    const uint8_t *next; /* unread input */
    size_t left;
    uint8_t in[IN_BYTES];
};

/* Read more input if none is left; at the end of the file `left` stays 0. */
static int refill(struct gzfile *g, struct err *err)
{
    ssize_t n = 0;

    if (g->left)
        return 0;
    do
        n = read(g->fd, g->in, IN_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, ERR_FATAL, errno, "%s", g->path);
    g->next = g->in;
    g->left = (size_t)n;
    rank_state_alive();
    return 0;
}

static int open_regular(struct gzfile *g, struct err *err)
{
    struct stat st;

    /* O_NONBLOCK: do not wait for a FIFO, which fstat then refuses. */
    g->fd = open(g->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (g->fd < 0)
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, errno, "%s", g->path);
    if (fstat(g->fd, &st) < 0)
        return err_errno(err, ERR_FATAL, errno, "%s", g->path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%s: not a regular file", g->path);
    g->size = (uint64_t)st.st_size;
    return refill(g, err);
}

struct gzfile *gzfile_open(const char *path, struct err *err)
{
    struct gzfile *g = memory_must(calloc(1, sizeof(*g)));

    g->path = path;
    if (open_regular(g, err) < 0) {
        gzfile_free(g);
        return NULL;
    }
    if (g->left >= 2 && g->next[0] == 0x1f && g->next[1] == 0x8b) {
        if (inflateInit2(&g->z, GZIP_WINDOW_BITS) != Z_OK)
            memory_exhausted();
        g->gzip = true;
    }
    return g;
}

void gzfile_free(struct gzfile *g)
{
    if (!g)
        return;
    if (g->gzip)
        inflateEnd(&g->z);
    if (g->fd >= 0)
        close(g->fd);
    free(g);
}

/* Copy plain bytes to dst; adds to *got. */
static void copy_some(struct gzfile *g, uint8_t *dst, size_t len, size_t *got)
{
    const size_t n = g->left < len - *got ? g->left : len - *got;

    memcpy(dst + *got, g->next, n);
    g->next += n;
    g->left -= n;
    *got += n;
}

/* Call inflate once, to dst; adds to *got. */
static int inflate_some(struct gzfile *g, uint8_t *dst, size_t len, size_t *got, struct err *err)
{
    uInt room = len - *got < UINT32_MAX / 2 ? (uInt)(len - *got) : UINT32_MAX / 2;

    g->z.next_in = (z_const Bytef *)g->next;
    g->z.avail_in = (uInt)g->left;
    g->z.next_out = dst + *got;
    g->z.avail_out = room;
    int rc = inflate(&g->z, Z_NO_FLUSH);
    g->taken += g->left - g->z.avail_in;
    g->next += g->left - g->z.avail_in;
    g->left = g->z.avail_in;
    *got += room - g->z.avail_out;
    if (rc == Z_MEM_ERROR)
        memory_exhausted();
    if (rc == Z_STREAM_END)
        g->between = true;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
        return err_set(err, ERR_INVALID, "%s: damaged gzip stream after %" PRIu64 " bytes: %s", g->path,
                       g->taken, g->z.msg ? g->z.msg : "no dictionary expected");
    return 0;
}

/* After a member: skip zeros (tapes are padded with them), then begin the next member; at the end `between`
 * stays true. */
static int next_member(struct gzfile *g, struct err *err)
{
    do {
        if (refill(g, err) < 0)
            return -1;
        if (!g->left)
            return 0;
        for (; g->left && !*g->next; g->next++, g->left--)
            g->taken++;
    } while (!g->left);
    if (*g->next != 0x1f)
        return err_set(err, ERR_INVALID, "%s: bytes behind the gzip stream's end at %" PRIu64, g->path,
                       g->taken);
    g->between = false;
    (void)inflateReset(&g->z);
    return 0;
}

int gzfile_read(struct gzfile *g, void *dst, size_t len, size_t *ret_len, struct err *err)
{
    size_t got = 0;

    while (got < len) {
        if (g->between && next_member(g, err) < 0)
            return -1;
        if (g->between)
            break;
        if (refill(g, err) < 0)
            return -1;
        if (!g->left && !g->gzip)
            break;
        if (!g->left)
            return err_set(err, ERR_INVALID, "%s: ends after %" PRIu64 " bytes, inside its gzip stream",
                           g->path, g->taken);
        if (!g->gzip)
            copy_some(g, dst, len, &got);
        else if (inflate_some(g, dst, len, &got, err) < 0)
            return -1;
    }
    *ret_len = got;
    return 0;
}

uint64_t gzfile_max_bytes(const struct gzfile *g)
{
    uint64_t max;

    if (!g->gzip)
        return g->size;
    return __builtin_mul_overflow(g->size, INFLATE_RATIO_MAX, &max) ? UINT64_MAX : max;
}

bool gzfile_compressed(const struct gzfile *g)
{
    return g->gzip;
}
