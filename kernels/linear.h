/* linear.h - a fully connected layer, out = in weight^T + bias, with an optional ReLU; or with a GELU behind or in front of it.
 *
 * Shapes:    R rows (the batch), I inputs, O outputs; weights keep PyTorch's (O,I).
 * Ownership: caller owns every buffer; buffers must not overlap; nothing is kept after the call.
 * Numerics:  f32; the order of sums depends on shape and instruction set only. NaN passes through the ReLU.
 */
#ifndef TK_KERNELS_LINEAR_H
#define TK_KERNELS_LINEAR_H

#include "kernels/kctx.h"

struct linear_shape {
    int rows, in, out;
};

/* ERR_INVALID naming the field: sizes under 1 or tensors over 2^31 - 1 elements. */
int linear_check(const struct linear_shape *s, struct err *err) MUST_CHECK;
size_t linear_workspace_bytes(const struct linear_shape *s);

typedef void linear_forward_op(struct kctx *ctx, const struct linear_shape *s, void *out, /* (R,O) written */
                               const void *in,                                            /* (R,I) */
                               const void *weight,                                        /* (O,I) */
                               const void *bias,                                          /* (O) or NULL */
                               bool relu); /* out = max(out, 0) */

/* Gradients are written, not added to. `out` is linear_forward's output when it applied the ReLU (its
 * gradient is then taken where out > 0), else NULL. */
typedef void linear_backward_op(struct kctx *ctx, const struct linear_shape *s,
                                void *din,           /* (R,I) written, or NULL for a first layer */
                                float *dweight,      /* (O,I) written */
                                float *dbias,        /* (O) written, or NULL */
                                const void *dout,    /* (R,O) */
                                const void *out,     /* (R,O) or NULL */
                                const void *in,      /* (R,I) */
                                const void *weight); /* (O,I) */

/* A layer and the GELU by tanh behind it (gelu.h): two operations, or one where the device has it. In bf16
 * the one may round a sum, or a gradient, once where the two do it twice. */
typedef void linear_gelu_forward_op(struct kctx *ctx, const struct linear_shape *s,
                                    void *out,          /* (R,O) written: the GELU of */
                                    void *before,       /* (R,O) written */
                                    const void *in,     /* (R,I) */
                                    const void *weight, /* (O,I) */
                                    const void *bias);  /* (O) */

/* A layer, and the GELU by tanh in front of it, whose output is `in`. */
typedef void gelu_linear_backward_op(struct kctx *ctx, const struct linear_shape *s,
                                     void *din,  /* (R,I) written: the gradient of `before`; may be `in` */
                                     void *room, /* (R,I) undefined behind the call */
                                     float *dweight,      /* (O,I) written */
                                     float *dbias,        /* (O) written */
                                     const void *dout,    /* (R,O) */
                                     const void *in,      /* (R,I) */
                                     const void *before,  /* (R,I) */
                                     const void *weight); /* (O,I) */

#endif
