/* attention.h - causal self-attention of several heads, as PyTorch's scaled_dot_product_attention(is_causal=True).
 *
 * Each position of a sequence takes a mean of the values of all positions up to itself, weighted by a softmax over the
 * products of its query with their keys, divided by the root of a head's size.
 *
 * Shapes:    B sequences, T positions, H heads of S numbers; qkv holds each position's queries, keys and values, every
 *            one H x S.
 * Ownership: caller owns every buffer; they must not overlap; nothing is kept after the call.
 * Memory:    grows with T, not with its square: weights are made in blocks, and made again for the gradients from
 *            each row's logarithm of its sum.
 * Numerics:  f32; keys are taken in blocks of a fixed length, first to last.
 */
#ifndef TK_KERNELS_ATTENTION_H
#define TK_KERNELS_ATTENTION_H

#include "kernels/kctx.h"

enum { ATTENTION_SIZE_MAX = 1024 };

struct attention_shape {
    int batch, time, heads;
    int size; /* of a head, 1..ATTENTION_SIZE_MAX */
};

/* ERR_INVALID naming the field: sizes under 1, a head over ATTENTION_SIZE_MAX, or tensors over 2^31 - 1 elements. */
int attention_check(const struct attention_shape *s, struct err *err) MUST_CHECK;

/* Scratch memory for each thread of the context. */
size_t attention_thread_bytes(const struct attention_shape *s);

typedef void attention_forward_op(struct kctx *ctx, const struct attention_shape *s,
                                  void *out,        /* (B,T,H,S) written */
                                  float *lse,       /* (B,H,T) written, for the backward pass */
                                  const void *qkv); /* (B,T,3,H,S) */

/* Gradients are written, not added to. out and lse are the forward pass's. */
typedef void attention_backward_op(struct kctx *ctx, const struct attention_shape *s,
                                   void *dqkv,       /* (B,T,3,H,S) written */
                                   const void *dout, /* (B,T,H,S) */
                                   const void *out,  /* (B,T,H,S) */
                                   const float *lse, /* (B,H,T) */
                                   const void *qkv); /* (B,T,3,H,S) */

#endif
