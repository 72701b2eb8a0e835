/* paint.c - write the difference between two frames as terminal sequences. */
#include "cli/watch/paint.h"

#include "common/sv.h"

#include <string.h>

/* Terminals that do not know synchronized updates ignore their marks. */
static const char BEGIN[] = "\x1b[?2026h", END[] = "\x1b[?2026l";

static bool same(struct sv a, struct sv b)
{
    return a.len == b.len && (!a.len || memcmp(a.p, b.p, a.len) == 0);
}

void paint_frame(struct paint *p, const struct buf *frame, int rows, struct buf *out)
{
    struct sv old = {buf_str(&p->shown), p->known ? p->shown.len : 0}, new = {buf_str(frame), frame->len};
    int row = 1;

    if (p->known && same(old, new))
        return;
    buf_puts(out, BEGIN, NULL);
    for (struct sv was, is; sv_next(&new, '\n', &is) && (is.len || new.len); row++) {
        const bool had = sv_next(&old, '\n', &was);
        if (p->known && had && same(was, is))
            continue;
        /* Cleared before the text: behind one that fills the line that would take its last character. */
        buf_printf(out, NULL, "\x1b[%d;1H\x1b[K", row);
        buf_append(out, is.p, is.len, NULL);
    }
    if ((!p->known || old.len) && row <= rows)
        buf_printf(out, NULL, "\x1b[%d;1H\x1b[J", row); /* below the last line only */
    buf_puts(out, END, NULL);
    buf_clear(&p->shown);
    buf_append(&p->shown, buf_str(frame), frame->len, NULL);
    p->known = true;
}

void paint_forget(struct paint *p)
{
    p->known = false;
}

void paint_release(struct paint *p)
{
    buf_release(&p->shown);
}
