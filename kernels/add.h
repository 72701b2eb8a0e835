/* add.h - add two buffers element by element, for residual connections.
 *
 * Ownership: caller owns every buffer; out may be a or b.
 */
#ifndef TK_KERNELS_ADD_H
#define TK_KERNELS_ADD_H

#include "kernels/kctx.h"

typedef void add_op(struct kctx *ctx, void *out, const void *a, const void *b, size_t n);

#endif
