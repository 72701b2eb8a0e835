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

#include "collectives/collectives.h"
#include "common/cleanup.h"
#include "kernels/kctx.h"
#include "trainer/data/sampler.h"
#include "trainer/model/model.h"
#include "trainer/model/optim.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/run/feed.h"
#include "trainer/run/stop.h"

struct device_comm;

struct train_parts {
    struct collectives *comm;
    struct device_comm *device_comm; /* sums on the device, where ctx is one; NULL: by comm */
    struct kctx *ctx;
    struct pipeline *pipeline;
    struct optim *optim;
    struct stop *stop; /* NULL: nobody stops this run */
    struct feed feed;
    struct sampler sampler;
    int64_t batch_size; /* per rank; of stages: of all together */
    int64_t timeout_ms;
    /* Gradients that a device sums over ranks at a time, while it computes further ones; 0: all at the end. */
    size_t bucket_bytes;
    struct loss_spec loss;
    uint64_t seed; /* of random numbers that layers draw (dropout) */
};

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
    uint32_t *places;          /* (batch) */
    uint32_t *order;           /* (items) of the epoch */
    uint32_t raise;            /* flags that this rank sends with the next step */
    bool exact;                /* wait for the device, so that the next result is that of its own step */
    double own_sum, mean_sum;  /* losses of the epoch; with a device those of before a resume */
    struct resident *resident; /* the training on a device; NULL: here */
};

struct train_result {
    int back;   /* the result is that of the step this many steps ago: a device may run ahead */
    bool known; /* false: no step's result is available yet */
    float loss; /* mean over all ranks */
    double own; /* this rank's; where it is not the last stage, the mean */
    uint32_t
        flags; /* enum collectives_flag, the union of all ranks', so that all ranks act alike after this step */
};

int train_make(struct train *t, const struct train_parts *p, struct err *err) MUST_CHECK;
void train_release(struct train *t);
#define cleanup_train __attribute__((cleanup(train_release)))

/* Draw the order of the samples of an epoch (from 0). */
void train_epoch(struct train *t, int64_t epoch);

/* Resume inside the epoch: step 0 begins after its first `places` samples. */
void train_skip(struct train *t, int64_t places);

/* Sums of the epoch's losses: of this rank's, and of the means. */
int train_sums(struct train *t, double *own, double *mean, struct err *err) MUST_CHECK;

/* What the caller will read in host memory after train_pull: nothing, weights and buffers, or the moments too. */
enum train_reads { TRAIN_READS_NOTHING, TRAIN_READS_WEIGHTS, TRAIN_READS_ALL };

/* Copy the model and the moments from host memory to the device (train_push, after the host wrote them) and back
 * (train_pull, before the host reads them). Without a device both do nothing. All ranks call train_pull, so that all learn
 * of a loss that was not finite. */
void train_push(struct train *t);
int train_pull(struct train *t, enum train_reads reads, struct err *err) MUST_CHECK;

/* All-reduce a step's gradients, with the loss behind them, through host memory, for a caller that computed them on a
 * device. */
int train_exchange(const struct train_parts *p, float *grad, uint32_t *flags, struct err *err) MUST_CHECK;

/* Step `step` (from 0) of what is left of the epoch. A loss that is not finite raises COLLECTIVES_NONFINITE and
 * leaves the
 * parameters as they were. */
int train_step(struct train *t, int64_t step, double lr, struct train_result *ret,
               struct err *err) MUST_CHECK;

#endif
