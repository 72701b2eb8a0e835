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

#include "trainer/run/train.h"

struct evaluate_result {
    double loss;
    double accuracy; /* 0..1; NaN where targets are values */
    uint32_t stop;   /* enum collectives_flag; not 0: stopped, and loss and accuracy are undefined */
};

/* Of the model that t trains: the first `items` samples that f reads. */
int evaluate(const struct train *t, const struct feed *f, int64_t items, struct evaluate_result *ret,
             struct err *err) MUST_CHECK;

#endif
