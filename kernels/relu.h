/* relu.h - max(x, 0) element by element, and its gradient. linear and conv2d do it in passing for less.
 *
 * Ownership: caller owns every buffer; out may be in, din may be dout.
 * Numerics:  NaN stays NaN; the gradient at 0 is 0.
 */
#ifndef TK_KERNELS_RELU_H
#define TK_KERNELS_RELU_H

#include "kernels/kctx.h"

typedef void relu_forward_op(struct kctx *ctx, float *out, const float *in, size_t n);

/* din = out > 0 ? dout : 0 */
typedef void relu_backward_op(struct kctx *ctx, float *din, const float *dout, const float *out, size_t n);

#endif
