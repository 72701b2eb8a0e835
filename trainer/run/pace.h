/* pace.h - the position of a run, its speed and the time left, for the bar (bar.h) and the progress file
 * (progress_writer.h). Pure.
 *
 * Units: milliseconds of a monotonic clock. Steps and epochs count from 1.
 */
#ifndef TK_TRAINER_RUN_PACE_H
#define TK_TRAINER_RUN_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace_view {
    int64_t epoch, epochs;
    int64_t step, steps;  /* of the epoch */
    int64_t done, total;  /* steps of the run */
    double loss;          /* the newest known one */
    double samples_per_s; /* of all ranks, over the last seconds; NaN: not known yet */
    double left_s;        /* NaN: not known yet */
};

/* Zero-initialised. */
struct pace {
    bool begun;
    int64_t first_ms, first_done;   /* when this process began: left_s uses the mean speed since then */
    int64_t window_ms, window_done; /* begin of the window of samples_per_s */
    double rate;                    /* steps per ms in the last complete window */
};

/* After every step: fill in samples_per_s and left_s from `done` and `total`. */
void pace_step(struct pace *p, int64_t now_ms, int64_t samples_per_step, struct pace_view *v);

#endif
