/* paint.c - write the difference between two frames as terminal sequences. */
#include "cli/watch/paint.h"

#include "common/sv.h"

#include <stdio.h>
#include <string.h>

/* Terminals that do not know synchronized updates ignore their marks. */
static const char BEGIN[] = "\x1b[?2026h", END[] = "\x1b[?2026l";

static void add(struct buf *out, const char *text, size_t len)
{
    struct err err;

    (void)buf_append(out, text, len, &err); /* bounded as a frame is, with its marks */
}

static void at_row(struct buf *out, int row)
{
    char code[24];

    add(out, code, (size_t)snprintf(code, sizeof(code), "\x1b[%d;1H", row));
}

static bool same(struct sv a, struct sv b)
{
    return a.len == b.len && (!a.len || memcmp(a.p, b.p, a.len) == 0);
}

void paint_frame(struct paint *p, const struct buf *frame, int rows, struct buf *out)
{
    struct sv old = {buf_str(&p->shown), p->known ? p->shown.len : 0}, new = {buf_str(frame), frame->len};
    const bool changed = !p->known || !same(old, new);
    int row = 1;

    if (!changed)
        return;
    add(out, BEGIN, sizeof(BEGIN) - 1);
    for (struct sv was, is; sv_next(&new, '\n', &is) && (is.len || new.len); row++) {
        const bool had = sv_next(&old, '\n', &was);
        if (p->known && had && same(was, is))
            continue;
        at_row(out, row);
        add(out, "\x1b[K",
            3); /* before the text: behind one that fills the line it would take its last character */
        add(out, is.p, is.len);
    }
    if ((!p->known || old.len) && row <= rows) {
        at_row(out, row);
        add(out, "\x1b[J", 3); /* below the last line only */
    }
    add(out, END, sizeof(END) - 1);
    buf_clear(&p->shown);
    add(&p->shown, buf_str(frame), frame->len);
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
