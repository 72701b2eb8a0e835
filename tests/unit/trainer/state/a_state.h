/* a_state.h - a small model with running statistics, Adam's moments and a folder for checkpoints. */
#ifndef TK_TESTS_UNIT_TRAINER_STATE_A_STATE_H
#define TK_TESTS_UNIT_TRAINER_STATE_A_STATE_H

#include "trainer/state/snapshot.h"

struct a_state {
    char dir[40];
    struct model_spec spec;
    struct model *model;
    struct optim optim;
    struct cursor cursor;
    double sums[2];
};

/* Set-up and tear-down of a test, with no fault injected. */
int a_state_make(void **state);
int a_state_remove(void **state);

struct snapshot a_state_snapshot(struct a_state *f);

#endif
