/* training.h - some steps of training among forked ranks, with a model in stages or in one piece, and what each rank saw
 * of them. */
#ifndef TK_TESTS_TRAINER_TRAINING_H
#define TK_TESTS_TRAINER_TRAINING_H

#include "../collectives/ranks.h"
#include "trainer/run/train.h"

#include <stdatomic.h>

enum {
    TRAINING_STEPS_MAX = 64,
    TRAINING_WEIGHTS_MAX = 1 << 19,
    TRAINING_BUFFERS_MAX = 512,
    TRAINING_ITEMS = 96,
    TRAINING_SIDE = 8
};

struct training {
    int stages; /* 0: the model is not cut */
    int64_t batch, items;
    int micro_batches;
    int wide;           /* outputs of the first stage's linear layer; 0: a small network of convolutions */
    bool dropout, norm; /* the small network has these layers as well */
    double lr;
    const struct optimizer_ops *optimizer;
    double momentum, clip; /* clip 0: the gradient's norm is not bounded */
    int epochs;
    int stop_rank, stop_step, stop_signal; /* raise it there before that step (from 0); stop_step -1: never */
    int evaluate_stop; /* raise SIGTERM on rank stop_rank in an evaluation, behind so many of its questions; 0: never */
    int poison_rank; /* its weights become NaN before step 2; -1: none */
    int64_t timeout_ms;
    int late_ms; /* rank 2 comes so much later than the others to the gathering of the weights */

    /* Each rank calls it before each step; NULL: none. */
    void (*trouble)(int rank, int step);
};

struct training_trace {
    int steps;
    float loss[TRAINING_STEPS_MAX];
    uint32_t flags;
    long allocations; /* in steps */
    int stage_len;
    struct err err; /* why the rank ended early */
    size_t weights; /* of the whole model: every rank's own, in stages rank 0's alone */
    float start[TRAINING_WEIGHTS_MAX], end[TRAINING_WEIGHTS_MAX];
    uint32_t evaluate_stop; /* the result of an evaluation */
    int evaluate_asked;
    size_t buffers;
    uint8_t own[TRAINING_BUFFERS_MAX], shown[TRAINING_BUFFERS_MAX]; /* before and after an evaluation */
};

struct training_shared {
    struct training task;
    struct training_trace trace[RANKS_MAX];
};

/* Counted up by a program that counts what it allocates. */
extern atomic_long training_allocations;

struct training training_usual(int stages, int64_t batch, int micro_batches);

struct training_shared *training_new(struct training task);
void training_free(struct training_shared *s);

/* For ranks_start and ranks_run: 0, or the exit code of what went wrong (training_trace.err). */
int training_body(struct collectives *c, void *shared);

struct training_shared *training_run(int world, struct training task);

/* Every rank of such a training took so many steps, and then heard these flags. */
void training_expect(int world, struct training task, int steps, uint32_t flags);

#endif
