/* reduce.h - the arithmetic of collectives: sums of equal slices in a fixed order.
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

#endif
