/* line_tokens.h - find the numbers in a line of output, each with the words before it. recognise.c calls it. Pure.
 *
 *   "Epoch 3/10, train loss: 0.53"  has  3 of 10 (key "Epoch"), 0.53 (key "loss", before it "train")
 *
 * A key is the word directly before the number; only blanks, ':', '=', '#', quotes or an opening bracket may
 * be between them. Only blanks may be between the key and the word before it.
 *
 * Ownership: words and numbers point into the line.
 */
#ifndef TK_LAUNCHER_PROGRESS_LINE_TOKENS_H
#define TK_LAUNCHER_PROGRESS_LINE_TOKENS_H

#include "common/sv.h"

struct number {
    struct sv key, before; /* before: the word before the key; both may be empty */
    double value;          /* finite, not negative: a number after '-' has no key */
    double of;             /* the 10 of "3/10"; NAN: a single number */
    bool count;            /* digits only, in both numbers, and no letter, dot or '/' after them */
    const char *start, *end;
};

struct line_tokens {
    struct sv rest;
    struct sv key, before; /* the last two words, if nothing else followed */
    bool cut;              /* more than blanks follows the last word */
};

/* Find the next number in `rest`; begin with {.rest = line}. False: there is none. */
bool line_tokens_next(struct line_tokens *t, struct number *ret);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Whether the word is one of the list; "load*" matches every word that begins with "load". Case is
 * ignored. */
bool line_tokens_is(struct sv word, const char *const *list);

/* The first run of letters in the text that is in the list ("train_loss2" has the runs "train" and "loss");
 * NULL: none. */
const char *line_tokens_find(struct sv text, const char *const *list);

/* Whether all runs of letters in the text are in the list. */
bool line_tokens_all(struct sv text, const char *const *list);

#endif
