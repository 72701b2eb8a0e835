/* mse.h - mean squared error and its gradient, as PyTorch's mse_loss.
 *
 * Shapes:    (R,C) row-major; R >= 1, C >= 1. The gradient is that of the mean over all R x C elements.
 * Ownership: caller owns every buffer; dout may be out.
 * Numerics:  differences in f32, squares and sums in f64, first to last.
 */
#ifndef TK_KERNELS_MSE_H
#define TK_KERNELS_MSE_H

#include "kernels/kctx.h"

/* Returns the sum over rows of each row's mean: divide by R for the loss, or add over batches and ranks first. */
typedef double mse_op(struct kctx *ctx, float *dout, /* (R,C) written, or NULL for evaluation */
                      const float *out,              /* (R,C) */
                      const float *target,           /* (R,C) */
                      int rows, int cols);

#endif
