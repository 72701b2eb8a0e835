/* gather.c - collect the text of one JSON object, or skim its names when it is too long to keep. */
#include "kube/gather.h"

#include <string.h>

enum { KEPT_BYTES = 16 << 10 };

void gather_init(struct gather *g, size_t text_max_bytes, bool event)
{
    *g = (struct gather){.text = BUF_INIT(text_max_bytes), .event = event};
}

static void begin_to_skim(struct gather *g)
{
    g->over = true;
    skim_init(&g->skim, g->event);
    skim_feed(&g->skim, (struct sv){g->text.data, g->text.len});
    buf_release(&g->text);
}

int gather_add(struct gather *g, struct sv bytes, struct err *err)
{
    if (bytes.len > GATHER_MAX_BYTES - g->bytes)
        return err_set(err, ERR_INVALID, "no end of an object within %d bytes", GATHER_MAX_BYTES);
    g->bytes += bytes.len;
    if (!g->over && bytes.len > g->text.max - g->text.len)
        begin_to_skim(g);
    if (!g->over)
        return buf_append(&g->text, bytes.p, bytes.len, err);
    skim_feed(&g->skim, bytes);
    return 0;
}

int gather_end(struct gather *g, struct sv bytes, gather_on_object *on_object, void *ctx, struct err *err)
{
    struct sv text = bytes;
    int rc = 0;

    if (g->bytes || bytes.len > g->text.max) {
        if (gather_add(g, bytes, err) < 0)
            return -1;
        text = (struct sv){g->text.data, g->text.len};
    }
    if (text.len && text.p[text.len - 1] == '\r')
        text.len--;
    if (text.len || g->over)
        rc = on_object(ctx, text, g->over ? &g->skim : NULL, err);
    gather_reset(g);
    return rc;
}

int gather_lines(struct gather *g, struct sv bytes, gather_on_object *on_object, void *ctx, struct err *err)
{
    while (bytes.len) {
        const char *nl = memchr(bytes.p, '\n', bytes.len);
        if (!nl)
            return gather_add(g, bytes, err);
        struct sv line = {bytes.p, (size_t)(nl - bytes.p)};
        bytes = (struct sv){nl + 1, bytes.len - line.len - 1};
        if (gather_end(g, line, on_object, ctx, err) < 0)
            return -1;
    }
    return 0;
}

void gather_reset(struct gather *g)
{
    if (g->text.cap > KEPT_BYTES)
        buf_release(&g->text);
    else
        buf_clear(&g->text);
    skim_release(&g->skim);
    g->over = false;
    g->bytes = 0;
}

void gather_release(struct gather *g)
{
    buf_release(&g->text);
    skim_release(&g->skim);
}
