/* train_parts.h - what a training step works with and what it gives, here (train.c) and on a device (resident/).
 *
 * Ownership: everything in struct train_parts is borrowed.
 */
#ifndef TK_TRAINER_RUN_TRAIN_PARTS_H
#define TK_TRAINER_RUN_TRAIN_PARTS_H

#include "common/cleanup.h"
#include "trainer/data/sampler.h"
#include "trainer/model/loss.h"
#include "trainer/model/model.h"
#include "trainer/model/optim.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/run/feed.h"
#include "trainer/run/stop.h"

struct train_parts {
    struct pipeline *pipeline; /* and its options: ranks, device, batch, deadline */
    struct optim *optim;
    struct stop *stop; /* NULL: nobody stops this run */
    struct feed feed;
    struct sampler sampler;
    /* Gradients that a device sums over ranks at a time, while it computes further ones; 0: all at the end. */
    size_t bucket_bytes;
    struct loss_spec loss;
    uint64_t seed; /* of random numbers that layers draw (dropout) */
};

struct train_result {
    int back;   /* the result is that of the step this many steps ago: a device may run ahead */
    bool known; /* false: no step's result is available yet */
    float loss; /* mean over all ranks */
    double own; /* this rank's; where it is not the last stage, the mean */
    uint32_t
        flags; /* enum collectives_flag, the union of all ranks', so that all ranks act alike after this step */
};

/* What the caller will read in host memory after train_pull: nothing, weights and buffers, or the moments too. */
enum train_reads { TRAIN_READS_NOTHING, TRAIN_READS_WEIGHTS, TRAIN_READS_ALL };

/* On the last stage, in host memory: the loss of a micro-batch whose outputs are `out`. dout: becomes the gradient of `share` times its
 * mean, and grad that of a head's parameters; NULL: an evaluation. */
int train_loss(const struct train_parts *p, const struct micro_batch *at, const struct feed_targets *to,
               const float *out, float share, float *dout, float *grad, struct loss_result *ret,
               struct err *err) MUST_CHECK;

/* All-reduce a step's gradients, with the loss behind them, through host memory, for a caller that computed them on a
 * device. */
int train_exchange(const struct train_parts *p, float *grad, uint32_t *flags, struct err *err) MUST_CHECK;

#endif
