/* pool2d.h - max and average pooling with their gradients, as PyTorch's MaxPool2d and AvgPool2d.
 *
 * Shapes:    B batch, H W C input; OH = (H + 2 pad - window) / stride + 1, OW alike (what does not fill a window
 *            at the right and bottom is left out, as PyTorch's pools do). Activations are (B,H,W,C).
 * Ownership: caller owns every buffer; buffers must not overlap; nothing is kept after the call.
 * Numerics:  of equal values the first in row-major window order is chosen; a NaN wins, as in PyTorch. Padding is
 *            never the largest; in a mean it counts as zeros, or not at all (count_include_pad).
 */
#ifndef TK_KERNELS_POOL2D_H
#define TK_KERNELS_POOL2D_H

#include "kernels/kctx.h"

#include <stdbool.h>
#include <stdint.h>

struct pool2d_shape {
    int batch;
    int in_h, in_w, in_c;
    int window;  /* 1..15, square */
    int stride;  /* 1.. */
    int pad;     /* 0..window/2, on each side */
    bool inside; /* a mean is that of the pixels of its window which lie in the image */
};

/* ERR_INVALID naming the field: sizes under 1, a window over 15 or larger than the padded input, a padding over
 * half a window, or tensors over 2^31 - 1 elements. */
int pool2d_check(const struct pool2d_shape *s, struct err *err) MUST_CHECK;

/* Of a shape that passed pool2d_check. It needs no scratch memory. */
int pool2d_out_h(const struct pool2d_shape *s);
int pool2d_out_w(const struct pool2d_shape *s);

typedef void maxpool2d_forward_op(struct kctx *ctx, const struct pool2d_shape *s,
                                  float *out,       /* (B,OH,OW,C) written */
                                  uint8_t *argmax,  /* (B,OH,OW,C) written: place in the window; or NULL */
                                  const float *in); /* (B,H,W,C) */

/* din is written, not added to. With `out` (maxpool2d_forward's output; NULL otherwise) the pooled layer ended
 * in a ReLU whose gradient is taken here too: nothing passes where out is not > 0. */
typedef void maxpool2d_backward_op(struct kctx *ctx, const struct pool2d_shape *s,
                                   float *din,            /* (B,H,W,C) written */
                                   const float *dout,     /* (B,OH,OW,C) */
                                   const uint8_t *argmax, /* (B,OH,OW,C) as the forward pass left it */
                                   const float *out);     /* (B,OH,OW,C) or NULL */

typedef void avgpool2d_forward_op(struct kctx *ctx, const struct pool2d_shape *s,
                                  float *out,       /* (B,OH,OW,C) written */
                                  const float *in); /* (B,H,W,C) */

typedef void avgpool2d_backward_op(struct kctx *ctx, const struct pool2d_shape *s,
                                   float *din,         /* (B,H,W,C) written */
                                   const float *dout); /* (B,OH,OW,C) */

#endif
