/* evaluate.h - compute mean loss and accuracy over a part of the data; each replica of the model computes one
 * shard. run_validate.c calls it.
 *
 * Numerics:  without padding: every sample counts once. Losses are added in f64. The chunk size changes only
 *            the rounding of the sums.
 * Order:     a collective call: every rank makes it. Before each chunk the ranks exchange whether one has
 *            received a stop signal; then all stop together, without a result.
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

/* Evaluate the model of `t` on the first `items` samples of `f`. */
int evaluate(const struct train *t, const struct feed *f, int64_t items, struct evaluate_result *ret,
             struct err *err) MUST_CHECK;

#endif
