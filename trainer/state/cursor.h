/* cursor.h - the position of a run (epoch, step, samples), independent of the number of ranks. Pure.
 *
 * A schedule that counts steps counts those of the run's first world: a step is step_samples samples, whatever the present
 * world takes at a time. So the rate at a sample is the same when ranks come and go.
 */
#ifndef TK_TRAINER_STATE_CURSOR_H
#define TK_TRAINER_STATE_CURSOR_H

#include <stdint.h>

struct cursor {
    int64_t epoch;    /* from 1: the one that is being trained */
    int64_t consumed; /* samples of the epoch's order that all ranks together have taken, padding included */
    int64_t epoch_step;   /* steps taken in it */
    int64_t step;         /* steps of the run */
    int64_t items;        /* samples that are trained on */
    int64_t step_samples; /* samples of a step of all ranks, when the run began */
    int64_t validated;    /* 1: the epoch is over and its validation done */
};

/* Steps of a whole epoch. */
static inline int64_t cursor_steps(const struct cursor *c)
{
    return (c->items + c->step_samples - 1) / c->step_samples;
}

/* The time of the schedule: steps before the epoch and, as a fraction, those of its samples. Never behind the epoch's end. */
static inline double cursor_time(const struct cursor *c)
{
    const int64_t taken = c->consumed < c->items ? c->consumed : c->items; /* without padding */

    return (double)((c->epoch - 1) * cursor_steps(c)) + (double)taken / (double)c->step_samples;
}

#endif
