/* spec_option.h - the keys of a YAML mapping as rows of a table: name, type, range and default of each.
 *
 * The trainer has such a table for each kind of layer, optimizer and data set. The reader of presets, the errors, the
 * manual and the kind's code use it, so a key is listed once. The caller keeps the values in arrays: the value of row i
 * is number[i] for SPEC_NUMBER, text[i] for SPEC_TEXT, else option[i]: the integer, 0 or 1 for a flag, or the index
 * in `choices`.
 */
#ifndef TK_COMMON_SPEC_OPTION_H
#define TK_COMMON_SPEC_OPTION_H

#include <stdbool.h>
#include <stdint.h>

enum { SPEC_OPTIONS_MAX = 8 };

enum spec_option_type {
    SPEC_INTEGER,
    SPEC_NUMBER,
    SPEC_FLAG,   /* false or true */
    SPEC_CHOICE, /* one of `choices` */
    SPEC_TEXT,
};

struct spec_option {
    const char *key; /* NULL ends a list */
    enum spec_option_type type;
    double min, max; /* of integers and numbers, inclusive; of texts max is the length in bytes */
    bool required;
    double fallback;            /* when not required; a text's is NULL */
    const char *const *choices; /* NULL-terminated */
};

/* Set every value of option[] and number[] to its default; 0 if it is required. The caller's text[] begins as NULL. */
static inline void spec_defaults(const struct spec_option *o, int64_t *option, double *number)
{
    for (int i = 0; o[i].key; i++)
        if (o[i].type == SPEC_NUMBER)
            number[i] = o[i].required ? 0 : o[i].fallback;
        else
            option[i] = o[i].required ? 0 : (int64_t)o[i].fallback;
}

#endif
