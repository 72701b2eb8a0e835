/* decoder.h - a GPT-2 token by token: what came before is kept as keys and values, and not computed again.
 *
 * Ownership: decoder_make to decoder_free; the model and the context are borrowed.
 * Numerics:  the logits are the model's own but for the order of sums.
 * Memory:    keys and values of all positions, and a pass over as many.
 * Errors:    ERR_INVALID: the model is not a GPT-2 of that many heads.
 */
#ifndef TK_TOOLS_GENERATE_DECODER_H
#define TK_TOOLS_GENERATE_DECODER_H

#include "kernels/kctx.h"
#include "trainer/model/model.h"

struct decoder;

struct decoder *decoder_make(struct model *m, struct kctx *ctx, int heads, struct err *err);
void decoder_free(struct decoder *d);

static inline void decoder_freep(struct decoder **d)
{
    decoder_free(*d);
}
#define cleanup_decoder __attribute__((cleanup(decoder_freep)))

int decoder_vocab(const struct decoder *d);
int decoder_positions(const struct decoder *d); /* tokens it can hold */
int decoder_len(const struct decoder *d);       /* tokens it holds */

/* `n` more tokens, each 0..vocab-1; there must be room for as many, at least one. */
void decoder_take(struct decoder *d, const uint16_t *token, int n);

/* What comes behind token `at` of the last decoder_take's, and behind the ones after it: (rows, vocab), until the next call. */
enum { DECODER_LOGITS_ROWS = 16 };
const float *decoder_logits(struct decoder *d, int at, int rows);

/* Only the first `len` of them happened. */
void decoder_rewind(struct decoder *d, int len);

#endif
