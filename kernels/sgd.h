/* sgd.h - one step of stochastic gradient descent over flat buffers, in the operation order of torch.optim.
 *
 *     g' = g + weight_decay p       u = momentum u + g'  (u = g' without momentum)       p = p - lr u
 *
 * Ownership: caller owns every buffer; buffers must not overlap. u starts as zeros.
 * Numerics:  scalars are rounded once to f32; products are fused where torch fuses them: the same bits where the
 *            instruction set has FMA.
 */
#ifndef TK_KERNELS_SGD_H
#define TK_KERNELS_SGD_H

#include "kernels/kctx.h"

struct sgd_options {
    double lr, momentum, weight_decay;
};

void sgd_step(struct kctx *ctx, const struct sgd_options *options, float *p, /* (N) updated */
              float *u, /* (N) updated; may be NULL when momentum is 0 */
              const float *g, size_t n);

#endif
