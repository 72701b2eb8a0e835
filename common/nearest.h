/* nearest.h - find the known word that a misspelled one probably means, for "did you mean" messages. Pure.
 *
 * Letters are compared without case, and '-' equals '_'. A word is near when its edit distance (letters
 * replaced, missing, added, or swapped with a neighbour) is at most 1 for 2 to 5 given letters, 2 for 6 to 8,
 * 3 for 9 and more; or, as a worse match, when one word is the beginning of the other, of three letters or
 * more.
 *
 * Ownership: texts are borrowed.
 * Order:     nearest_to, nearest_offer for each known word, nearest_hint. Of equally near words the first one
 *            wins.
 */
#ifndef TK_COMMON_NEAREST_H
#define TK_COMMON_NEAREST_H

#include "common/sv.h"

enum { NEAREST_BYTES = 64, NEAREST_HINT_BYTES = NEAREST_BYTES + 32 }; /* longer words never match */

struct nearest {
    struct sv given;
    const char *word; /* the best so far; NULL: none */
    int cost;
};

struct nearest nearest_to(struct sv given);
void nearest_offer(struct nearest *n, const char *word);

/* Offer all words of a list that ends with NULL. */
void nearest_offer_all(struct nearest *n, const char *const *words);

/* Returns buf with "; did you mean --epochs?" for `prefix` "--"; "" when no word is near. */
const char *nearest_hint(const struct nearest *n, const char *prefix, char buf[static NEAREST_HINT_BYTES]);

#endif
