/* reduce.h - sums and sums of squares in a fixed order, for collectives and gradient norms.
 *
 * Ownership: caller owns every buffer; out may be slices[0], and overlaps nothing else.
 * Numerics:  ((s0 + s1) + s2) + ... in f32, then one product with `scale`; every caller that passes the same
 *            slices in the same order gets the same bits, in whatever parts it asks for them.
 */
#ifndef TK_KERNELS_REDUCE_H
#define TK_KERNELS_REDUCE_H

#include "kernels/kctx.h"

/* out = scale * sum of slices[0..n_slices-1], each of n elements; n_slices >= 1. */
void reduce_sum(struct kctx *ctx, float *out, const float *const *slices, int n_slices, size_t n,
                float scale);

enum { REDUCE_BLOCK = 4096 };

/* sums[i] = the sum of squares of the i-th REDUCE_BLOCK elements, in f64; there are reduce_blocks(n) of them. */
static inline size_t reduce_blocks(size_t n)
{
    return (n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
}
void reduce_squares(struct kctx *ctx, double *sums, const float *x, size_t n);

/* x = scale x */
void reduce_scale(struct kctx *ctx, float *x, float scale, size_t n);

#endif
