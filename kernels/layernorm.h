/* layernorm.h - layer normalisation as PyTorch's LayerNorm: each row to mean 0 and variance 1, then scaled and shifted.
 *
 * Shapes:    (R,C) row-major; R rows (the batch), C channels. R >= 1.
 * Ownership: caller owns every buffer; they must not overlap; nothing is kept after the call.
 * Numerics:  means, variances and sums over rows in f64, in a fixed order.
 */
#ifndef TK_KERNELS_LAYERNORM_H
#define TK_KERNELS_LAYERNORM_H

#include "kernels/kctx.h"

struct layernorm_shape {
    int rows, channels;
    double eps;
};

/* ERR_INVALID naming the field: sizes under 1 or tensors over 2^31 - 1 elements. */
int layernorm_check(const struct layernorm_shape *s, struct err *err) MUST_CHECK;

typedef void layernorm_forward_op(struct kctx *ctx, const struct layernorm_shape *s,
                                  void *out,           /* (R,C) written */
                                  float *mean,         /* (R) written, for the backward pass */
                                  float *rstd,         /* (R) written, for the backward pass */
                                  const void *in,      /* (R,C) */
                                  const float *weight, /* (C) */
                                  const float *bias);  /* (C) or NULL */

/* Gradients are written, not added to. */
typedef void layernorm_backward_op(struct kctx *ctx, const struct layernorm_shape *s,
                                   void *din,            /* (R,C) written, or NULL for a first layer */
                                   float *dweight,       /* (C) written */
                                   float *dbias,         /* (C) written, or NULL */
                                   const void *dout,     /* (R,C) */
                                   const void *more,     /* (R,C) added to din (a residual), or NULL */
                                   const void *in,       /* (R,C) */
                                   const float *mean,    /* (R) */
                                   const float *rstd,    /* (R) */
                                   const float *weight); /* (C) */

#endif
