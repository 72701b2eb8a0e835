/* jsonnum.h - scan, print and compare JSON numbers as text, since a double cannot hold them all. Pure.
 *
 * Limits:    at most JSONNUM_MAX_BYTES characters per number: cJSON cuts longer ones.
 */
#ifndef TK_COMMON_JSONNUM_H
#define TK_COMMON_JSONNUM_H

#include <stdbool.h>
#include <stddef.h>

enum { JSONNUM_MAX_BYTES = 63, JSONNUM_PRINT_BYTES = 32 };

/* The length of the number at p by JSON's grammar; 0: there is none. *ret_plain: it is an integer of at most
 * 15 digits, which a double holds exactly and jsonnum_print writes in the same characters. */
size_t jsonnum_scan(const char *p, size_t len, bool *ret_plain);

/* Print the shortest text that reads back as v; integers up to 2^53 without exponent or fraction. False: v is
 * not finite. */
bool jsonnum_print(double v, char out[JSONNUM_PRINT_BYTES]);

/* Whether `text` is the number that its double `v` represents: for a 64-bit integer its exact value, for
 * others the digits of jsonnum_print. Of all numbers with the same double exactly one does. */
bool jsonnum_is_double(const char *text, double v);

#endif
