/* cursor.h - the position of a run (epoch, step, samples), independent of the number of ranks. */
#ifndef TK_TRAINER_STATE_CURSOR_H
#define TK_TRAINER_STATE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

struct cursor {
    int64_t epoch;    /* from 1: the one that is being trained */
    int64_t consumed; /* samples of the epoch's order that all ranks together have taken, padding included */
    int64_t epoch_step; /* steps taken in it */
    int64_t step;       /* steps of the run */
    int64_t items;      /* samples that are trained on; 0: not known */
    bool validated;     /* the epoch is over and its validation done */
};

#endif
