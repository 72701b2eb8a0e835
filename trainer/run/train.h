/* train.h - run training steps: load a batch, forward, backward, all-reduce of the gradients, update.
 * run_epoch.c calls it.
 *
 * Ownership: train_make to train_release; everything in struct train_parts is borrowed meanwhile.
 * Order:     every rank runs the same steps. One all_reduce carries all gradients, the loss and the flags;
 *            with several stages only the loss, which the last stage computes, and the flags. On a GPU
 *            resident/ does all of this.
 * Errors:    those of the collectives. A step allocates no memory and writes no output.
 * Numerics:  the gradient is the mean over all ranks' samples. The factor 1 / number of samples is applied to
 *            the loss's gradient, before the sum, for each rank and micro-batch. */
#ifndef TK_TRAINER_RUN_TRAIN_H
#define TK_TRAINER_RUN_TRAIN_H

#include "trainer/run/train_parts.h"

struct resident;

struct train {
    struct train_parts p;
    size_t grad_len; /* parameters of this stage */
    float *grad;     /* (grad_len + 1): gradients, then the loss; memory of the collectives, or of own_grad */
    float *own_grad; /* with stages: allocated here */
    float *x;        /* (batch, elements of an input) */
    /* (batch, classes), on the last stage: the gradient of the outputs, or of the head's input; without
     * stages of one micro-batch. NULL: on other stages, or on a device. */
    float *dlogits;
    int32_t *labels;           /* (batch, labels per sample); NULL with values */
    float *values;             /* (batch, values); NULL with labels */
    uint32_t *positions;       /* (batch) */
    uint32_t *order;           /* (items) the epoch's order */
    uint32_t raise;            /* flags that this rank sends with the next step */
    bool exact;                /* wait for the device, so that the next result is that of its own step */
    double own_sum, mean_sum;  /* sums of the epoch's losses; with a device only those before a resume */
    struct resident *resident; /* training on a device; NULL: on the CPU */
};

int train_make(struct train *t, const struct train_parts *p, struct err *err) MUST_CHECK;
void train_release(struct train *t);
#define cleanup_train __attribute__((cleanup(train_release)))

/* Draw the order of the samples of an epoch (from 0). */
void train_epoch(struct train *t, int64_t epoch);

/* Resume inside the epoch: step 0 begins after its first `positions` samples. */
void train_skip(struct train *t, int64_t positions);

/* The sums of the epoch's losses: this rank's, and the means over all ranks. */
int train_sums(struct train *t, double *own, double *mean, struct err *err) MUST_CHECK;

/* Copy the model and the moments from host memory to the device (train_push, after the host wrote them) and back
 * (train_pull, before the host reads them). Without a device both do nothing. All ranks call train_pull, so
 * that all get the error of a loss that was not finite. */
void train_push(struct train *t);
int train_pull(struct train *t, enum train_reads reads, struct err *err) MUST_CHECK;

/* Run step `step` (from 0) of the rest of the epoch. A loss that is not finite sets COLLECTIVES_NONFINITE and
 * leaves the parameters unchanged. */
int train_step(struct train *t, int64_t step, double lr, struct train_result *ret,
               struct err *err) MUST_CHECK;

#endif
