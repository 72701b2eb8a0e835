/* gather.c - collect the text of one JSON object, or skim its names when it is too long to keep. */
#include "kube/gather.h"

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

int gather_end(struct gather *g, struct sv bytes, struct sv *ret, const struct skim **ret_over,
               struct err *err)
{
    *ret = bytes;
    *ret_over = NULL;
    if (gather_is_empty(g) && bytes.len <= g->text.max)
        return 0;
    if (gather_add(g, bytes, err) < 0)
        return -1;
    *ret = (struct sv){g->text.data, g->text.len};
    *ret_over = g->over ? &g->skim : NULL;
    return 0;
}

void gather_reset(struct gather *g)
{
    if (g->text.cap > KEPT_BYTES)
        buf_release(&g->text);
    else
        buf_clear(&g->text);
    g->over = false;
    g->bytes = 0;
}

void gather_release(struct gather *g)
{
    buf_release(&g->text);
}
