/* classifier.h - a matrix of classes behind a network and the cross entropy of what it gives, in one: the products with
 * all classes exist for a block of rows at a time only, so that a vocabulary of 50,000 costs no memory by the batch.
 *
 * Shapes:    R rows, I inputs, O classes; the weight has PyTorch's layout (O,I).
 * Ownership: caller owns every buffer; they must not overlap.
 * Errors:    ERR_INVALID names the row and the label outside 0..O-1; nothing was written then.
 * Numerics:  products and exponentials in f32, a row's sum in blocks of f32 added in f64, rows added first to last in
 *            f64.
 */
#ifndef TK_KERNELS_CLASSIFIER_H
#define TK_KERNELS_CLASSIFIER_H

#include "kernels/cross_entropy.h"
#include "kernels/kctx.h"
#include "kernels/linear.h"

int classifier_check(const struct linear_shape *s, struct err *err) MUST_CHECK;
size_t classifier_workspace_bytes(const struct linear_shape *s);

/* The loss, and the gradients of `share` times its sum over the rows; din and dweight NULL: an evaluation. */
typedef int classifier_op(struct kctx *ctx, const struct linear_shape *s,
                          struct loss_result *result, /* written */
                          void *din,                  /* (R,I) written, or NULL */
                          float *dweight,             /* (O,I) written, or NULL */
                          const void *in,             /* (R,I) */
                          const void *weight,         /* (O,I) */
                          const int32_t *labels,      /* (R) */
                          float share, struct err *err);

#endif
