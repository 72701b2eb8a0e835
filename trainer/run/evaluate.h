/* evaluate.h - compute mean loss and accuracy over a part of the data; each copy of the model computes its own shard.
 *
 * Numerics:  nothing is padded; losses are added in f64, and every sample counts once. The chunk size changes
 *            the result only by the rounding of those sums.
 * Order:     a collective call: every rank makes it. Before each chunk all ranks exchange whether one has been told
 *            to stop; then all stop together, without a result.
 * Errors:    those of the collectives.
 */
#ifndef TK_TRAINER_RUN_EVALUATE_H
#define TK_TRAINER_RUN_EVALUATE_H

#include "collectives/collectives.h"
#include "common/cleanup.h"
#include "kernels/kctx.h"
#include "trainer/model/model.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/run/feed.h"
#include "trainer/run/stop.h"

struct resident;

struct evaluate_parts {
    struct collectives *comm;
    struct kctx *ctx;
    struct pipeline *pipeline;
    struct resident *resident; /* the training's state on a device; NULL: in host memory */
    struct loss_spec loss;
    struct feed feed;
    struct stop *stop; /* NULL: it cannot be stopped */
    int64_t items;     /* of the part */
    int64_t timeout_ms;
};

struct evaluate_result {
    double loss;
    double accuracy; /* 0..1; NaN where targets are values */
    uint32_t stop;   /* enum collectives_flag; not 0: stopped, and loss and accuracy are undefined */
};

/* Whether any rank has been told to stop. A collective call. */
int evaluate_stopped(struct collectives *comm, struct stop *stop, int64_t timeout_ms, uint32_t *ret,
                     struct err *err) MUST_CHECK;

int evaluate(const struct evaluate_parts *p, struct evaluate_result *ret, struct err *err) MUST_CHECK;

#endif
