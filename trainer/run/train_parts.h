/* train_parts.h - the inputs and results of a training step, for train.c and for resident/ on a device.
 *
 * Ownership: everything in struct train_parts is borrowed.
 */
#ifndef TK_TRAINER_RUN_TRAIN_PARTS_H
#define TK_TRAINER_RUN_TRAIN_PARTS_H

#include "common/cleanup.h"
#include "kernels/ops.h"
#include "trainer/data/sampler.h"
#include "trainer/model/model.h"
#include "trainer/model/optim.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/run/feed.h"
#include "trainer/run/stop.h"

struct train_parts {
    struct pipeline *pipeline; /* with its options: ranks, device, batch, deadline */
    struct optim *optim;
    struct stop *stop; /* NULL: do not poll for signals */
    struct feed feed;
    struct sampler sampler;
    /* Size of a bucket of gradients that a device reduces while it computes further ones; 0: reduce all at
     * the end. */
    size_t bucket_bytes;
    struct loss_spec loss;
    uint64_t seed; /* of the layers' random numbers (dropout) */
};

struct train_result {
    int back;   /* the result is of the step this many steps ago: a device may run ahead */
    bool known; /* false: no step's result is available yet */
    float loss; /* mean over all ranks */
    double own; /* this rank's loss; on other stages than the last, the mean */
    uint32_t
        flags; /* enum collectives_flag, OR over all ranks, so that all ranks act alike after this step */
};

/* The data that the caller reads in host memory after train_pull: none, weights and buffers, or also the
 * moments. */
enum train_reads { TRAIN_READS_NOTHING, TRAIN_READS_WEIGHTS, TRAIN_READS_ALL };

/* On the last stage, in host memory: compute the loss of a micro-batch with outputs `out`. dout: written, the
 * gradient of `share` times the mean loss; grad: written, that of a head's parameters. NULL: an
 * evaluation. */
int train_loss(const struct train_parts *p, const struct micro_batch *at, const struct feed_targets *to,
               const float *out, float share, float *dout, float *grad, struct loss_result *ret,
               struct err *err) MUST_CHECK;

/* All-reduce a step's gradients, followed by the loss, in host memory. resident/ calls it too, without
 * NCCL. */
int train_exchange(const struct train_parts *p, float *grad, uint32_t *flags, struct err *err) MUST_CHECK;

#endif
