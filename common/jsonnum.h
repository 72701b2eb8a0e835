/* jsonnum.h - the numbers of JSON as text: a double cannot hold them all. Pure.
 *
 * Units: numbers have at most JSONNUM_MAX_BYTES characters: cJSON cuts longer ones.
 */
#ifndef TK_COMMON_JSONNUM_H
#define TK_COMMON_JSONNUM_H

#include <stdbool.h>
#include <stddef.h>

enum { JSONNUM_MAX_BYTES = 63, JSONNUM_PRINT_BYTES = 32 };

/* The length of the number that begins at p; 0: none does, by JSON's grammar. *ret_plain: an integer of at most 15 digits,
 * which a double holds and jsonnum_print writes in the same characters. */
size_t jsonnum_scan(const char *p, size_t len, bool *ret_plain);

/* The shortest text that reads back as v; integers up to 2^53 without exponent or fraction. False: v is not finite. */
bool jsonnum_print(double v, char out[JSONNUM_PRINT_BYTES]);

/* Whether the number `text` is the one that its double `v` stands for: an integer of 64 bits exactly, any other by the digits
 * of jsonnum_print. Of the numbers that share a double one has this. */
bool jsonnum_is_double(const char *text, double v);

#endif
