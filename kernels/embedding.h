/* embedding.h - sum of a token's embedding and its position's, per position of a sequence.
 *
 * Shapes:    B sequences of T tokens, tables of V tokens and of at least T positions, C numbers each. Token numbers
 *            travel as floats, which hold whole numbers below 2^24 exactly; one that is not in 0..V-1 aborts: who
 *            reads them checks them.
 * Ownership: caller owns every buffer; they must not overlap.
 * Numerics:  a table row's gradient is added up in the order of the tokens.
 */
#ifndef TK_KERNELS_EMBEDDING_H
#define TK_KERNELS_EMBEDDING_H

#include "kernels/kctx.h"

enum { EMBEDDING_VOCAB_MAX = 1 << 24 };

struct embedding_shape {
    int batch, time, vocab, channels;
};

/* ERR_INVALID naming the field: sizes under 1, too many tokens, or tensors over 2^31 - 1 elements. */
int embedding_check(const struct embedding_shape *s, struct err *err) MUST_CHECK;

typedef void embedding_forward_op(struct kctx *ctx, const struct embedding_shape *s,
                                  void *out,              /* (B,T,C) written */
                                  const float *tokens,    /* (B,T) */
                                  const void *table,      /* (V,C) */
                                  const void *positions); /* (T,C) */

typedef void embedding_backward_op(struct kctx *ctx, const struct embedding_shape *s, bool more,
                                   float *dtable,        /* (V,C) written; with `more` added to */
                                   float *dpositions,    /* (T,C) written */
                                   const void *dout,     /* (B,T,C) */
                                   const float *tokens); /* (B,T) */

#endif
