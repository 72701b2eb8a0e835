/* bar.h - show on a terminal, in one line that is redrawn in place, how far a training is and how long it will still take.
 *
 * Ownership: the stream is borrowed. A bar whose stream is NULL shows nothing.
 * Units:     milliseconds of a monotonic clock. Steps and epochs count from 1.
 */
#ifndef TK_TRAINER_RUN_BAR_H
#define TK_TRAINER_RUN_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What the line says. */
struct bar_view {
    int64_t epoch, epochs;
    int64_t step, steps;  /* of the epoch */
    double part;          /* of the run that is done, 0..1 */
    double loss;          /* the newest that is known */
    double samples_per_s; /* of all ranks */
    double left_s;
};

enum { BAR_BYTES = 128 };

/* Pure. Write the line for a terminal of so many columns: ASCII, at most columns - 1 bytes and a NUL, so that the terminal
 * never wraps it. Where not all of it fits, the step goes first, then the epoch, samples/s, the bar, the loss, the time. */
void bar_render(const struct bar_view *v, int columns, char out[static BAR_BYTES]);

struct bar {
    FILE *out; /* a terminal; NULL: none */
    bool shown, begun;
    int64_t drawn_ms;
    int64_t first_ms,
        first_done; /* where this process began: the time that is left goes by the mean since then */
    int64_t rate_ms, rate_done; /* where the window of samples/s began */
    double rate;                /* steps per ms */
};

/* After every step: draw the line when that is due, five times a second at most. In *v the fields up to `steps` and the loss
 * are read. The run has `total` steps, of which `done` are done. */
void bar_step(struct bar *b, int64_t now_ms, const struct bar_view *v, int64_t done, int64_t total,
              int64_t samples_per_step);

/* Erase the line, if it is shown: something else is to be written. */
void bar_hide(struct bar *b);

#endif
