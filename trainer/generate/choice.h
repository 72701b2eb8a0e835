/* choice.h - how likely a GPT-2 finds each of several endings of a text, and whether that picks the right one.
 *
 * Numerics:  logarithms of probabilities, added up in f64. Of equals the first is picked.
 * Errors:    ERR_INVALID: an empty context or ending, a token that the model does not have, or an ending that is longer than
 *            the model's positions.
 */
#ifndef TK_TRAINER_GENERATE_CHOICE_H
#define TK_TRAINER_GENERATE_CHOICE_H

#include "trainer/generate/decoder.h"

enum { CHOICE_ENDINGS_MAX = 16 };

struct choice_tokens {
    const uint16_t *token;
    size_t len;
};

struct choice_question {
    struct choice_tokens context, ending[CHOICE_ENDINGS_MAX];
    int endings; /* 2..CHOICE_ENDINGS_MAX */
    int answer;  /* the number of one of them */
};

/* May a model of that many tokens and positions be asked? */
int choice_check(const struct choice_question *q, int vocab, int positions, struct err *err) MUST_CHECK;

/* Of each ending the sum of the logarithms of its tokens behind the context's. Of a context that is too long, its last tokens. */
int choice_scores(struct decoder *d, const struct choice_question *q, double *ret,
                  struct err *err) MUST_CHECK;

struct choice_counts {
    int64_t asked;
    int64_t by_sum;  /* of the likeliest ending: right */
    int64_t by_mean; /* of the likeliest by token, which long endings do not lose by their length: right */
};

/* One question more. */
int choice_count(struct decoder *d, const struct choice_question *q, struct choice_counts *counts,
                 struct err *err) MUST_CHECK;

#endif
