/* batchnorm.h - each channel of a batch with mean 0 and variance 1, then scaled and shifted, as PyTorch's
 * BatchNorm1d and BatchNorm2d.
 *
 * Shapes:    (R,C) row-major: R samples of a vector, or all pixels of a batch of images; C channels. R >= 1.
 * Ownership: caller owns every buffer; they must not overlap; nothing is kept after the call.
 * Numerics:  means and variances in f64, rows first to last, rounded to f32. Of a single row the variance is 0
 *            (torch refuses it), and the running variance then moves towards 0.
 */
#ifndef TK_KERNELS_BATCHNORM_H
#define TK_KERNELS_BATCHNORM_H

#include "kernels/kctx.h"

struct batchnorm_shape {
    int rows, channels;
    double eps;
    double momentum; /* running = (1 - momentum) running + momentum new */
};

/* ERR_INVALID naming the field: sizes under 1 or tensors over 2^31 - 1 elements. */
int batchnorm_check(const struct batchnorm_shape *s, struct err *err) MUST_CHECK;
size_t batchnorm_workspace_bytes(const struct batchnorm_shape *s);

/* With `train` the statistics are those of the batch, and the running ones move towards them (the variance as
 * that of a sample, over R - 1); without, they are the running ones. */
typedef void batchnorm_forward_op(struct kctx *ctx, const struct batchnorm_shape *s, bool train,
                                  float *out,          /* (R,C) written */
                                  float *mean,         /* (C) written, for the backward pass */
                                  float *rstd,         /* (C) written, for the backward pass */
                                  float *running_mean, /* (C) */
                                  float *running_var,  /* (C) */
                                  const float *in,     /* (R,C) */
                                  const float *weight, /* (C) */
                                  const float *bias);  /* (C) */

/* `train`, mean and rstd as in the forward pass. Gradients are written, not added to. */
typedef void batchnorm_backward_op(struct kctx *ctx, const struct batchnorm_shape *s, bool train,
                                   float *din,           /* (R,C) written, or NULL for a first layer */
                                   float *dweight,       /* (C) written */
                                   float *dbias,         /* (C) written */
                                   const float *dout,    /* (R,C) */
                                   const float *in,      /* (R,C) */
                                   const float *mean,    /* (C) */
                                   const float *rstd,    /* (C) */
                                   const float *weight); /* (C) */

#endif
