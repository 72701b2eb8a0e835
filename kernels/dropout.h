/* dropout.h - dropout: set each element to 0 with probability p, else scale it by 1 / (1 - p).
 *
 * Random:    what is drawn for an element depends on seed, step, layer, sample and its place in the sample alone:
 *            not on threads, ranks or on what else is in the batch. It is not what torch draws.
 * Shapes:    (B,N): B samples of N elements.
 * Ownership: caller owns every buffer; they must not overlap.
 */
#ifndef TK_KERNELS_DROPOUT_H
#define TK_KERNELS_DROPOUT_H

#include "kernels/kctx.h"

#include <stdint.h>

struct dropout_shape {
    int batch;
    size_t len;
    double p; /* 0..0.999 */
};

struct dropout_draw {
    uint64_t seed, step;
    const int64_t *step_at; /* on a GPU: where the step is read when the work is done; NULL: `step` counts */
    uint32_t layer;
    const uint32_t *samples; /* (B) */
};

typedef void dropout_forward_op(struct kctx *ctx, const struct dropout_shape *s,
                                const struct dropout_draw *draw, void *out, /* (B,N) written */
                                uint8_t *keep,                              /* (B,N) written: 1 stays */
                                const void *in);                            /* (B,N) */

typedef void dropout_backward_op(struct kctx *ctx, const struct dropout_shape *s,
                                 void *din,            /* (B,N) written */
                                 const void *dout,     /* (B,N) */
                                 const uint8_t *keep); /* (B,N) as the forward pass left it */

#endif
