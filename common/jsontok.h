/* jsontok.h - read a JSON text token by token, in pieces of any size. Pure.
 *
 * It distinguishes only brackets, strings and words (numbers, true, false, null); a parser has to check that
 * they form JSON. White space is every byte up to ' ', as in cJSON.
 *
 * Ownership: a struct jsontok owns no memory; `begin` and `nul` point into the current piece.
 * Order:     begin with a zeroed struct, set keep_depth, and call jsontok_next until it returns '\0', for
 *            each piece in turn.
 */
#ifndef TK_COMMON_JSONTOK_H
#define TK_COMMON_JSONTOK_H

#include "common/sv.h"

struct jsontok {
    size_t depth;      /* number of open brackets, including the token's own */
    size_t keep_depth; /* strings at this depth or above are kept in `text` */
    const char *begin; /* of the token, or of the part of it that lies in this piece */
    const char *nul;   /* a NUL character in a string, as a byte or as \u0000; NULL: none so far */
    char text[320];    /* the last kept string, up to its first escape, followed by a NUL */
    size_t len;
    bool odd;    /* `text` is incomplete: the string has an escape or a NUL, or is longer */
    char inside; /* '"' or 'w': the piece ended inside a string or a word */
    int escape;  /* characters of \u0000 seen so far */
};

/* Read up to the end of the next token and return it: a bracket, ':', ',', '"' for a string, or the first
 * character of a word. A word that continues in the next piece is returned only once. '\0': end of the piece.
 */
char jsontok_next(struct jsontok *t, struct sv *bytes);

#endif
