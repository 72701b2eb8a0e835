/* pace.h - how far a run is, how fast it goes and how long it will still take: what the bar (bar.h) shows and the progress
 * file (progress_writer.h) says. Pure.
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
    double loss;          /* the newest that is known */
    double samples_per_s; /* of all ranks, over the last seconds; NaN: too early to tell */
    double left_s;        /* NaN: too early to tell */
};

/* Zero-initialised. */
struct pace {
    bool begun;
    int64_t first_ms, first_done;   /* where this process began: the time left goes by the mean since then */
    int64_t window_ms, window_done; /* where the window of samples_per_s began */
    double rate;                    /* steps per ms in the last whole window */
};

/* After every step: fill in samples_per_s and left_s from `done` and `total`. */
void pace_step(struct pace *p, int64_t now_ms, int64_t samples_per_step, struct pace_view *v);

#endif
