/* cross_entropy.h - log-softmax and negative log-likelihood of each row's label, as PyTorch's cross_entropy.
 *
 * With smoothing s the target is (1 - s) of the label and s shared equally by all classes.
 *
 * Shapes:    (R,C) row-major; R >= 1, C >= 1. The gradient is that of the mean over the R rows given.
 * Ownership: caller owns every buffer; dlogits may be logits.
 * Errors:    ERR_INVALID names the row and the label outside 0..C-1; nothing was written then.
 * Numerics:  exp in f32, sums and logarithms in f64, left to right; rows are added first to last.
 */
#ifndef TK_KERNELS_CROSS_ENTROPY_H
#define TK_KERNELS_CROSS_ENTROPY_H

#include "kernels/kctx.h"

#include <stdint.h>

struct loss_result {
    double sum;  /* over the rows: divide by R for the mean, or add over batches and ranks first */
    int correct; /* rows whose first largest logit is the label's */
};

typedef int cross_entropy_op(struct kctx *ctx, struct loss_result *result, /* written */
                             float *dlogits,        /* (R,C) written, or NULL for evaluation */
                             const float *logits,   /* (R,C) */
                             const int32_t *labels, /* (R) */
                             int rows, int classes, double smoothing, /* 0..1 */
                             struct err *err);

#endif
