/* lines.c - lines out of pieces. */
#include "kube/lines.h"

#include <string.h>

void lines_init(struct lines *l, size_t line_max_bytes)
{
    l->part = (struct buf)BUF_INIT(line_max_bytes);
}

static int give(struct sv line, int (*on_line)(void *ctx, struct sv line, struct err *err), void *ctx,
                struct err *err)
{
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    return line.len ? on_line(ctx, line, err) : 0;
}

static int keep(struct lines *l, const char *p, size_t len, struct err *err)
{
    return buf_append(&l->part, p, len, err) < 0 ? err_wrap(err, "a line of the stream") : 0;
}

int lines_feed(struct lines *l, struct sv bytes, int (*on_line)(void *ctx, struct sv line, struct err *err),
               void *ctx, struct err *err)
{
    while (bytes.len) {
        const char *nl = memchr(bytes.p, '\n', bytes.len);
        if (!nl)
            return keep(l, bytes.p, bytes.len, err);
        struct sv line = {bytes.p, (size_t)(nl - bytes.p)};
        bytes = (struct sv){nl + 1, bytes.len - line.len - 1};
        if (line.len > l->part.max)
            return keep(l, line.p, line.len, err);
        if (!l->part.len) {
            if (give(line, on_line, ctx, err) < 0)
                return -1;
            continue;
        }
        if (keep(l, line.p, line.len, err) < 0)
            return -1;
        int rc = give((struct sv){l->part.data, l->part.len}, on_line, ctx, err);
        lines_reset(l);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Lines that span pieces are rare and may be megabytes: their memory is not kept. */
void lines_reset(struct lines *l)
{
    if (l->part.cap > 16384)
        buf_release(&l->part);
    else
        buf_clear(&l->part);
}

void lines_release(struct lines *l)
{
    buf_release(&l->part);
}
