/* flatten.h - between our (B,H,W,C) activations and the (B, C*H*W) rows that PyTorch's flatten gives, so that
 * the weights of the linear layer behind it mean the same.
 *
 * Ownership: caller owns both buffers; they must not overlap. A copy: nothing is rounded.
 */
#ifndef TK_KERNELS_FLATTEN_H
#define TK_KERNELS_FLATTEN_H

#include "kernels/kctx.h"

struct flatten_shape {
    int batch, h, w, c;
};

/* ERR_INVALID naming the field: sizes under 1 or over 2^31 - 1 elements. */
int flatten_check(const struct flatten_shape *s, struct err *err) MUST_CHECK;

typedef void flatten_forward_op(struct kctx *ctx, const struct flatten_shape *s,
                                float *out,       /* (B,C,H,W) written */
                                const float *in); /* (B,H,W,C) */

typedef void flatten_backward_op(struct kctx *ctx, const struct flatten_shape *s,
                                 float *din,         /* (B,H,W,C) written */
                                 const float *dout); /* (B,C,H,W) */

#endif
