/* recognise.c - recognise a training's progress in one line of its output; cut a stream into such lines. */
#include "launcher/progress/recognise.h"

bool recognise_line(struct sv line, struct progress_seen *ret)
{
    (void)line;
    *ret = progress_nothing();
    return false;
}

static void end_line(struct recogniser *r, void (*seen)(void *ctx, const struct progress_seen *s), void *ctx)
{
    struct progress_seen s;

    if (recognise_line((struct sv){r->line, (size_t)r->len}, &s))
        seen(ctx, &s);
    r->len = 0;
}

void recogniser_take(struct recogniser *r, const char *bytes, size_t len,
                     void (*seen)(void *ctx, const struct progress_seen *s), void *ctx)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == '\n' || bytes[i] == '\r')
            end_line(r, seen, ctx);
        else if (r->len < RECOGNISE_LINE_BYTES)
            r->line[r->len++] = bytes[i];
}
