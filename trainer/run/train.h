/* train.h - run training steps: load a batch, forward, backward, all-reduce of the gradients, update.
 *
 * Ownership: train_make to train_release; everything in struct train_parts is borrowed meanwhile.
 * Order:     every rank runs the same steps. One all_reduce carries all gradients, the loss and the
 *            flags. Of a model in several stages it carries the loss, which the last stage knows, and the flags. On a GPU all of this is resident/'s.
 * Errors:    those of the collectives. Nothing is allocated and nothing is written inside a step.
 * Numerics:  the gradient is the mean over all ranks' samples. Each one's share is divided by their number
 *            before the sum, as a factor of the loss's gradient; so is each micro-batch's.
 */
#ifndef TK_TRAINER_RUN_TRAIN_H
#define TK_TRAINER_RUN_TRAIN_H

#include "trainer/run/train_parts.h"

struct resident;

struct train {
    struct train_parts p;
    size_t grad_len; /* parameters of this stage */
    float *grad;     /* (grad_len + 1): gradients, then the loss; the collectives' memory, or */
    float *own_grad; /* of a stage, its own */
    float *x;        /* (batch, elements of an input) */
    /* (batch, classes), on the last stage; of what a head takes, and of one micro-batch where there are no stages. NULL:
     * elsewhere, or on a device. */
    float *dlogits;
    int32_t *labels;           /* (batch, labels of a sample), or */
    float *values;             /* (batch, values) */
    uint32_t *positions;       /* (batch) */
    uint32_t *order;           /* (items) of the epoch */
    uint32_t raise;            /* flags that this rank sends with the next step */
    bool exact;                /* wait for the device, so that the next result is that of its own step */
    double own_sum, mean_sum;  /* losses of the epoch; with a device those of before a resume */
    struct resident *resident; /* the training on a device; NULL: here */
};

int train_make(struct train *t, const struct train_parts *p, struct err *err) MUST_CHECK;
void train_release(struct train *t);
#define cleanup_train __attribute__((cleanup(train_release)))

/* Draw the order of the samples of an epoch (from 0). */
void train_epoch(struct train *t, int64_t epoch);

/* Resume inside the epoch: step 0 begins after its first `positions` samples. */
void train_skip(struct train *t, int64_t positions);

/* Sums of the epoch's losses: of this rank's, and of the means. */
int train_sums(struct train *t, double *own, double *mean, struct err *err) MUST_CHECK;

/* Copy the model and the moments from host memory to the device (train_push, after the host wrote them) and back
 * (train_pull, before the host reads them). Without a device both do nothing. All ranks call train_pull, so that all learn
 * of a loss that was not finite. */
void train_push(struct train *t);
int train_pull(struct train *t, enum train_reads reads, struct err *err) MUST_CHECK;

/* Step `step` (from 0) of what is left of the epoch. A loss that is not finite raises COLLECTIVES_NONFINITE and
 * leaves the
 * parameters as they were. */
int train_step(struct train *t, int64_t step, double lr, struct train_result *ret,
               struct err *err) MUST_CHECK;

#endif
