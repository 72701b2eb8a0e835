/* sgd.h - one step of SGD over flat buffers, in torch.optim's order of operations.
 *
 *     g' = g + weight_decay p      u = momentum u + (1 - dampening) g'      p = p - lr u
 *
 * Without momentum u is g'; with nesterov p changes by g' + momentum u instead. torch starts with u = g': pass
 * dampening 0 in the first step.
 *
 * Ownership: caller owns every buffer; buffers must not overlap. u starts as zeros.
 * Numerics:  scalars are rounded once to f32; products are fused where torch fuses them: the same bits where the
 *            instruction set has FMA.
 */
#ifndef TK_KERNELS_SGD_H
#define TK_KERNELS_SGD_H

#include "kernels/kctx.h"
#include "kernels/scalars.h"

struct sgd_options {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
};

struct sgd_scalars sgd_scalars_of(const struct sgd_options *options);

void sgd_step(struct kctx *ctx, const struct sgd_options *options, float *p, /* (N) updated */
              float *u, /* (N) updated; may be NULL when momentum is 0 */
              const float *g, size_t n);

#endif
