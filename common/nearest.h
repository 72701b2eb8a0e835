/* nearest.h - the known word that an unknown one is most likely meant to be, for messages. Pure.
 *
 * Letters count without case, and '-' is '_'. A word is near when at most a third of what was given is wrong, missing, too many
 * or swapped with its neighbour (one letter of two to five, three of nine and more), or when one is the
 * other's beginning, of three letters or more.
 *
 * Ownership: texts are borrowed.
 * Order:     nearest_to, nearest_offer for each known word, nearest_hint. Of words that are equally near the first counts.
 */
#ifndef TK_COMMON_NEAREST_H
#define TK_COMMON_NEAREST_H

#include "common/sv.h"

enum { NEAREST_BYTES = 64, NEAREST_HINT_BYTES = NEAREST_BYTES + 32 }; /* longer words are near to none */

struct nearest {
    struct sv given;
    const char *word; /* NULL: none is near */
    int cost;
};

struct nearest nearest_to(struct sv given);
void nearest_offer(struct nearest *n, const char *word);

/* All of a list that ends with NULL. */
void nearest_offer_all(struct nearest *n, const char *const *words);

/* "; did you mean --epochs?", with `prefix` "--"; "" when no word is near. */
const char *nearest_hint(const struct nearest *n, const char *prefix, char buf[static NEAREST_HINT_BYTES]);

#endif
