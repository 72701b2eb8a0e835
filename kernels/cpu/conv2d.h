/* conv2d.h - what the forward and backward passes of a convolution share.
 *
 * Every pass is a product of matrices that reads the activations in place: a row of windows is K_H segments of
 * K_W * C neighbouring floats, so no window is ever copied. Weights are repacked, once per call; an input with
 * padding is copied into its frame of zeros first.
 */
#ifndef TK_KERNELS_CPU_CONV2D_H
#define TK_KERNELS_CPU_CONV2D_H

#include "kernels/conv2d.h"
#include "kernels/cpu/run.h"

/* Sizes that follow from a shape. */
struct conv2d_dims {
    int out_h, out_w;
    int pixels;         /* out_h * out_w */
    int k;              /* k_h * k_w * in_c: the window */
    ptrdiff_t in_row;   /* floats from one input row to the next */
    ptrdiff_t in_image; /* from one input image to the next */
    int n_seg, seg_len; /* neighbours of a window: k_h of k_w * in_c, or with dilation k_h * k_w of in_c */
    int group;          /* images taken together, so that a block of weights read is used often enough */
};

/* The shape as the products see it: the frame of zeros is part of the input. */
struct conv2d_shape conv2d_framed(const struct conv2d_shape *s);

/* Copy images of s into frames of zeros, or the inner part of frames back. */
void conv2d_frame(struct kctx *ctx, const struct conv2d_shape *s, float *framed, const float *in);
void conv2d_unframe(struct kctx *ctx, const struct conv2d_shape *s, float *in, float *framed);

/* Of framed shapes, as all below. */
struct conv2d_dims conv2d_dims(const struct conv2d_shape *s);

/* Offsets of every output pixel's window in an image's input, and of pixel i in a matrix of `ld` columns. */
void conv2d_window_offsets(const struct conv2d_shape *s, int32_t *at);
int32_t conv2d_tap_offset(const struct conv2d_shape *s, int tap); /* of the kernel's element in a window */
void conv2d_row_offsets(int n, ptrdiff_t ld, int32_t *at);

/* Scratch memory of the forward pass. */
size_t conv2d_forward_bytes(const struct conv2d_shape *s);

/* Bytes of one segment block of packed weights that may stay in the first-level cache beside the input. */
enum { CONV2D_B_BYTES = 24 * 1024 };

#endif
