/* bar.h - a progress bar on a terminal: one line, redrawn in place, with the position of a run and the time
 * left. report.c calls it.
 *
 * Ownership: the stream is borrowed. A bar whose stream is NULL shows nothing.
 * Units:     milliseconds of a monotonic clock. Steps and epochs count from 1.
 */
#ifndef TK_TRAINER_RUN_BAR_H
#define TK_TRAINER_RUN_BAR_H

#include "trainer/run/pace.h"

#include <stdio.h>

enum { BAR_BYTES = 128 };

/* Pure. Write the line for a terminal of `columns` columns: ASCII, at most columns - 1 bytes and a NUL, so
 * that the terminal never wraps it. If it is too long it drops, in this order, the step, the epoch,
 * samples/s, the bar, the loss, the time. */
void bar_render(const struct pace_view *v, int columns, char out[static BAR_BYTES]);

struct bar {
    FILE *out; /* a terminal; NULL: none */
    bool shown;
    int64_t drawn_ms;
};

/* After every step: draw the line if due, at most five times a second, once the time left is known. */
void bar_step(struct bar *b, int64_t now_ms, const struct pace_view *v);

/* Erase the line, if it is shown, before other output. */
void bar_hide(struct bar *b);

#endif
