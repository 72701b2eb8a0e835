/* lines.c - cut a byte stream into lines. */
#include "kube/lines.h"

#include <string.h>

void lines_init(struct lines *l, size_t line_max_bytes)
{
    gather_init(&l->part, line_max_bytes, true);
}

static int give(struct sv line, const struct skim *over, lines_on_line *on_line, void *ctx, struct err *err)
{
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    return line.len || over ? on_line(ctx, line, over, err) : 0;
}

int lines_feed(struct lines *l, struct sv bytes, lines_on_line *on_line, void *ctx, struct err *err)
{
    while (bytes.len) {
        const char *nl = memchr(bytes.p, '\n', bytes.len);
        if (!nl)
            return gather_add(&l->part, bytes, err);
        struct sv line = {bytes.p, (size_t)(nl - bytes.p)};
        const struct skim *over;
        bytes = (struct sv){nl + 1, bytes.len - line.len - 1};
        if (gather_end(&l->part, line, &line, &over, err) < 0)
            return -1;
        int rc = give(line, over, on_line, ctx, err);
        gather_reset(&l->part);
        if (rc < 0)
            return -1;
    }
    return 0;
}

void lines_reset(struct lines *l)
{
    gather_reset(&l->part);
}

void lines_release(struct lines *l)
{
    gather_release(&l->part);
}
