/* tokens.h - the numbers of a line of output, each with the words in front of it. Pure.
 *
 *   "Epoch 3/10, train loss: 0.53"  has  3 of 10 (key "Epoch"), 0.53 (key "loss", before it "train")
 *
 * A key is the word right in front of the number, with nothing but blanks, ':', '=', '#', quotes or an opening bracket
 * between them; only blanks stand between it and the word in front of it.
 *
 * Ownership: words and numbers point into the line.
 */
#ifndef TK_LAUNCHER_PROGRESS_TOKENS_H
#define TK_LAUNCHER_PROGRESS_TOKENS_H

#include "common/sv.h"

struct number {
    struct sv key, before; /* before: the word in front of the key; both may be empty */
    double value;          /* finite; 0 and more: one behind a '-' has no key */
    double of;             /* of "3/10"; NAN: a single number */
    bool count;            /* digits only, in both numbers, and no letter, dot or '/' behind them */
    const char *start, *end;
};

struct tokens {
    struct sv rest;
    struct sv key, before; /* the last two words, while nothing else has come */
    bool cut;              /* more than blanks stands behind the last one */
};

/* The next number of the line, of which `rest` is what is left: begin with {.rest = line}. False: there is none. */
bool tokens_next(struct tokens *t, struct number *ret);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Whether the word is one of the list; "load*" stands for every word that begins so. Case does not count. */
bool tokens_is(struct sv word, const char *const *list);

/* The first run of letters in the text that is one of the list ("train" and "loss" are those of "train_loss2"); NULL: none is. */
const char *tokens_find(struct sv text, const char *const *list);

/* Whether all of them are. */
bool tokens_all(struct sv text, const char *const *list);

#endif
