/* softmax.h - softmax of each row, and its gradient.
 *
 * Shapes:    (R,C) row-major; R >= 0, C >= 1.
 * Ownership: caller owns every buffer; out may be in, din may be dout.
 * Numerics:  the row's maximum is taken off first; exp in f32, the row's sum in f64, left to right.
 */
#ifndef TK_KERNELS_SOFTMAX_H
#define TK_KERNELS_SOFTMAX_H

#include "kernels/kctx.h"

typedef void softmax_forward_op(struct kctx *ctx, float *out, /* (R,C) written */
                                const float *in,              /* (R,C) */
                                int rows, int classes);

/* din = out * (dout - sum(out * dout)) */
typedef void softmax_backward_op(struct kctx *ctx, float *din, /* (R,C) written */
                                 const float *dout,            /* (R,C) */
                                 const float *out,             /* (R,C) softmax_forward's output */
                                 int rows, int classes);

#endif
