/* add.h - the sum of two buffers, element by element: what a residual stream is made of.
 *
 * Ownership: caller owns every buffer; out may be a or b.
 */
#ifndef TK_KERNELS_ADD_H
#define TK_KERNELS_ADD_H

#include "kernels/kctx.h"

void add(struct kctx *ctx, float *out, const float *a, const float *b, size_t n);

#endif
