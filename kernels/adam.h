/* adam.h - one step of Adam or AdamW over flat buffers, in torch.optim's order of operations.
 *
 *     m = lerp(m, g, 1 - beta1)         v = v beta2 + (1 - beta2) g g
 *     p = p - (lr / (1 - beta1^t)) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 *
 * Ownership: caller owns every buffer; buffers must not overlap. m and v start as zeros.
 * Numerics:  scalars are computed in f64 and rounded once to f32; products are fused where torch fuses them, so
 *            m and v equal its bits where the instruction set has FMA, and p does up to the last bit of sqrt
 *            (ours is rounded correctly, MKL's is not).
 */
#ifndef TK_KERNELS_ADAM_H
#define TK_KERNELS_ADAM_H

#include "kernels/kctx.h"
#include "kernels/scalars.h"

#include <stdint.h>

struct adam_options {
    double lr, beta1, beta2, eps;
    double weight_decay;
    bool decoupled; /* AdamW: p shrinks by lr * weight_decay; otherwise weight_decay * p is added to g */
};

/* step: 1 for the first. */
struct adam_scalars adam_scalars_of(const struct adam_options *options, int64_t step);

void adam_step(struct kctx *ctx, const struct adam_options *options, int64_t step, /* 1 for the first */
               float *p,                                                           /* (N) updated */
               float *m,                                                           /* (N) updated */
               float *v,                                                           /* (N) updated */
               const float *g, size_t n);

#endif
