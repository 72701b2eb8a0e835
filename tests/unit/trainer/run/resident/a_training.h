/* a_training.h - what a training holds, on a GPU that is none or on the CPU, and its steps. */
#ifndef TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_TRAINING_H
#define TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_TRAINING_H

#include "trainer/data/tokens.h"
#include "trainer/run/evaluate.h"
#include "trainer/run/resident/resident.h"
#include "trainer/run/train.h"

struct training {
    struct collectives *comm; /* its own; NULL: somebody else's */
    struct kctx *ctx;
    struct tokens *tokens; /* NULL: samples are no windows */
    struct model_spec spec;
    struct pipeline pipeline;
    struct optim optim;
    struct train train;
    struct evaluate_parts part;
};

/* The last parts of one whose model and optimiser are there: its steps, and evaluations of the first `items` samples. */
void begin_training(struct training *t, const struct train_parts *p, int64_t items);
void close_training(struct training *t);

void run_step(struct training *t, int64_t step, double lr, bool exact, struct train_result *r);

/* Two that are alike come to the same weights, though one waits for every step and the other has as many in flight as there may
 * be. The rate of a step goes down. Closes both. */
void check_steps_in_flight(struct training *hurried, struct training *patient, int epochs, int64_t steps,
                           double lr);

/* Squares of what is wrong in a, as a share of b's. */
double wrong_share(const float *a, const float *b, size_t n);

#endif
