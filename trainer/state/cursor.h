/* cursor.h - the position of a run (epoch, step, samples), independent of the number of ranks. run/ and
 * snapshot.c use it. Pure.
 *
 * A schedule in steps counts steps of the run's first world size: a step is step_samples samples, whatever
 * the present ranks take per step. So the learning rate at a sample does not depend on the number of ranks.
 */
#ifndef TK_TRAINER_STATE_CURSOR_H
#define TK_TRAINER_STATE_CURSOR_H

#include <stdint.h>

struct cursor {
    int64_t epoch;    /* the current one, from 1 */
    int64_t consumed; /* samples of the epoch's order that all ranks together have taken, padding included */
    int64_t epoch_step;   /* steps taken in it */
    int64_t step;         /* steps of the run */
    int64_t items;        /* samples that are trained on */
    int64_t step_samples; /* samples per step of all ranks, when the run began */
    int64_t validated;    /* 1: the epoch and its validation are done */
};

/* Steps of a whole epoch. */
static inline int64_t cursor_steps(const struct cursor *c)
{
    return (c->items + c->step_samples - 1) / c->step_samples;
}

/* The time of the schedule, in steps: those of earlier epochs plus this epoch's samples as a fraction, at
 * most the epoch's end. */
static inline double cursor_time(const struct cursor *c)
{
    const int64_t taken = c->consumed < c->items ? c->consumed : c->items; /* without padding */

    return (double)((c->epoch - 1) * cursor_steps(c)) + (double)taken / (double)c->step_samples;
}

#endif
