/* update.h - one step of an optimizer over flat buffers, by one of the rules of scalars.h.
 *
 * Ownership: caller owns every buffer; buffers must not overlap. m and v start as zeros.
 * Numerics:  products are fused where torch fuses them, so m and v equal its bits where the instruction set has FMA, and so does p
 *            but for the last bit of Adam's sqrt (ours is rounded correctly, MKL's is not).
 */
#ifndef TK_KERNELS_UPDATE_H
#define TK_KERNELS_UPDATE_H

#include "kernels/kctx.h"
#include "kernels/scalars.h"

/* p, m and v are updated. m, v: NULL where the rule, or the rule with these scalars, has none. */
typedef void update_step_op(struct kctx *ctx, const struct update_scalars *s, float *p, float *m, float *v,
                            const float *g, size_t n);

#endif
