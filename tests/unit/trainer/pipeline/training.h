/* training.h - some steps of training among forked ranks, with a model in stages or in one piece, and what each rank saw
 * of them. */
#ifndef TK_TESTS_TRAINER_PIPELINE_TRAINING_H
#define TK_TESTS_TRAINER_PIPELINE_TRAINING_H

#include "../../collectives/ranks.h"
#include "trainer/run/train.h"

enum { TRAINING_STEPS_MAX = 32, TRAINING_WEIGHTS_MAX = 1 << 19, TRAINING_ITEMS = 80, TRAINING_SIDE = 8 };

struct training {
    int stages; /* 0: the model is not cut */
    int64_t batch;
    int micro_batches;
    int wide; /* outputs of the first stage's linear layer; 0: a small network of convolutions */
    const struct optimizer_ops *optimizer;
    double momentum, clip; /* clip 0: the gradient's norm is not bounded */
    int epochs;
    int stop_rank, stop_step, stop_signal; /* raise it there before that step; stop_step -1: never */
    int poison_rank;                       /* its weights become NaN before step 2; -1: none */
    int64_t timeout_ms;
    int late_ms; /* rank 2 comes so much later than the others to the gathering of the weights */

    /* Before step 2 this rank calls it; NULL: none. */
    void (*trouble)(int rank, int step);
};

struct training_trace {
    int steps;
    float loss[TRAINING_STEPS_MAX];
    uint32_t flags;
    int stage_len;
    struct err err; /* why the rank ended early */
    size_t weights; /* rank 0: of the whole model */
    float start[TRAINING_WEIGHTS_MAX], end[TRAINING_WEIGHTS_MAX];
};

struct training_shared {
    struct training task;
    struct training_trace trace[RANKS_MAX];
};

struct training training_usual(int stages, int64_t batch, int micro_batches);

struct training_shared *training_new(struct training task);
void training_free(struct training_shared *s);

/* For ranks_start and ranks_run: 0, or the exit code of what went wrong (training_trace.err). */
int training_body(struct collectives *c, void *shared);

struct training_shared *training_run(int world, struct training task);

#endif
