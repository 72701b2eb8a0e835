/* decoder.h - a GPT-2 one token at a time: what came before is kept as keys and values, and not computed again.
 *
 * Ownership: decoder_make to decoder_free; the model and the context are borrowed.
 * Numerics:  the logits are the model's own but for the order of sums.
 * Errors:    ERR_INVALID: the model is no GPT-2 of that many heads.
 */
#ifndef TK_TRAINER_GENERATE_DECODER_H
#define TK_TRAINER_GENERATE_DECODER_H

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

/* One more token, 0..vocab-1; there must be room. Then the logits of the next (vocab), until the next call; `last` false: they
 * are not wanted, and NULL. */
const float *decoder_next(struct decoder *d, int token, bool last);

/* None of them happened. */
void decoder_clear(struct decoder *d);

#endif
