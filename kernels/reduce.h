/* reduce.h - sums of squares in a fixed order, for the norm of gradients, and their scaling. The caller owns every buffer. */
#ifndef TK_KERNELS_REDUCE_H
#define TK_KERNELS_REDUCE_H

#include "kernels/kctx.h"

enum { REDUCE_BLOCK = 4096 };

/* sums[i] = the sum of squares of the i-th REDUCE_BLOCK elements, in f64; there are reduce_blocks(n) of them. */
static inline size_t reduce_blocks(size_t n)
{
    return (n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
}
typedef void reduce_squares_op(struct kctx *ctx, double *sums, const float *x, size_t n);

/* x = scale x */
typedef void reduce_scale_op(struct kctx *ctx, float *x, float scale, size_t n);

#endif
