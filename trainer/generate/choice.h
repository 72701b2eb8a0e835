/* choice.h - how likely a GPT-2 finds each of several endings of a text.
 *
 * Numerics: logarithms of probabilities, added up in f64.
 */
#ifndef TK_TRAINER_GENERATE_CHOICE_H
#define TK_TRAINER_GENERATE_CHOICE_H

#include "trainer/generate/decoder.h"

struct choice_tokens {
    const uint16_t *token;
    size_t len;
};

/* The sum of the logarithms of the ending's tokens behind the context's. Of a context that is too long, its last tokens. Errors:
 * ERR_INVALID: an empty context or ending, or an ending that is longer than the model's positions. */
int choice_score(struct decoder *d, const struct choice_tokens *context, const struct choice_tokens *ending,
                 double *ret, struct err *err) MUST_CHECK;

#endif
