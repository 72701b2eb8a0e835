/* gelu.h - x times the normal distribution at x, exactly or by tanh, as PyTorch's gelu.
 *
 * Ownership: caller owns every buffer; they must not overlap.
 * Numerics:  own approximations of erfc and exp, within 1e-7 of the value; NaN stays NaN.
 */
#ifndef TK_KERNELS_GELU_H
#define TK_KERNELS_GELU_H

#include "kernels/kctx.h"

enum gelu_form { GELU_EXACT, GELU_TANH };

typedef void gelu_forward_op(struct kctx *ctx, enum gelu_form form, void *out, const void *in, size_t n);

typedef void gelu_backward_op(struct kctx *ctx, enum gelu_form form, void *din, const void *dout,
                              const void *in, size_t n);

#endif
