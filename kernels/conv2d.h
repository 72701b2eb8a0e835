/* conv2d.h - two-dimensional convolution (cross-correlation, as PyTorch's Conv2d), with an optional ReLU.
 *
 * Shapes:    B batch, H W input height and width, C input channels, OH OW O the output's, K_H K_W the kernel.
 *            Activations are (B,H,W,C); weights keep PyTorch's (O,C,K_H,K_W).
 * Ownership: caller owns every buffer; buffers must not overlap; nothing is kept after the call.
 * Numerics:  f32; the order of sums depends on shape and instruction set only. NaN passes through the ReLU.
 */
#ifndef TK_KERNELS_CONV2D_H
#define TK_KERNELS_CONV2D_H

#include "kernels/kctx.h"

struct conv2d_shape {
    int batch;
    int in_h, in_w, in_c;
    int out_c;
    int k_h, k_w;
    int stride;   /* 1.. */
    int pad;      /* 0..4096 zeros around the input, on each side */
    int dilation; /* 1..: from one of the kernel's elements to the next in the input */
};

/* ERR_INVALID naming the field: sizes out of their ranges, a kernel (spread by dilation) larger than the padded
 * input, or tensors over 2^31 - 1 elements. */
int conv2d_check(const struct conv2d_shape *s, struct err *err) MUST_CHECK;

/* Of a shape that passed conv2d_check. */
int conv2d_out_h(const struct conv2d_shape *s);
int conv2d_out_w(const struct conv2d_shape *s);
size_t conv2d_workspace_bytes(const struct conv2d_shape *s);

typedef void conv2d_forward_op(struct kctx *ctx, const struct conv2d_shape *s,
                               float *out,          /* (B,OH,OW,O) written */
                               const float *in,     /* (B,H,W,C) */
                               const float *weight, /* (O,C,K_H,K_W) */
                               const float *bias,   /* (O) or NULL */
                               bool relu);          /* out = max(out, 0) */

/* Gradients are written, not added to. `out` is conv2d_forward's output when it applied the ReLU (its
 * gradient is then taken where out > 0), else NULL. Behind a max-pool, maxpool2d_backward's `relu` does the
 * same for less. */
typedef void conv2d_backward_op(struct kctx *ctx, const struct conv2d_shape *s,
                                float *din,           /* (B,H,W,C) written, or NULL for a first layer */
                                float *dweight,       /* (O,C,K_H,K_W) written */
                                float *dbias,         /* (O) written, or NULL */
                                const float *dout,    /* (B,OH,OW,O) */
                                const float *out,     /* (B,OH,OW,O) or NULL */
                                const float *in,      /* (B,H,W,C) */
                                const float *weight); /* (O,C,K_H,K_W) */

#endif
