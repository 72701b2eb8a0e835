/* sv.h - a view of bytes that someone else owns, and strict parsers of numbers. */
#ifndef TK_COMMON_SV_H
#define TK_COMMON_SV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv {
    const char *p; /* not NUL-terminated */
    size_t len;
};

struct sv sv_from(const char *s);
bool sv_eq(struct sv a, const char *s);
bool sv_starts(struct sv a, const char *prefix);
bool sv_ends(struct sv a, const char *suffix);
bool sv_contains(struct sv a, const char *part);
struct sv sv_trim(struct sv a);

static inline bool sv_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The view without its first n bytes; empty if it has fewer. */
static inline struct sv sv_skip(struct sv a, size_t n)
{
    return (struct sv){a.p + n, a.len - n};
}

/* Split at the first `sep`: *part is the text before it, *rest the text after it. False: *rest was used up. */
bool sv_next(struct sv *rest, char sep, struct sv *part);

/* All of `a` as a decimal number. False: it is not one, or not in min..max; *ret is then unchanged. */
bool sv_i64(struct sv a, int64_t min, int64_t max, int64_t *ret);
bool sv_f64(struct sv a, double *ret);

#endif
