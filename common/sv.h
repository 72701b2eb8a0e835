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
struct sv sv_trim(struct sv a);

static inline bool sv_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What is behind the first n bytes, at most all of them. */
static inline struct sv sv_skip(struct sv a, size_t n)
{
    return (struct sv){a.p + n, a.len - n};
}

/* Split at the first `sep`: *part is what is before it, *rest what is behind it. False when *rest was used
 * up. */
bool sv_next(struct sv *rest, char sep, struct sv *part);

/* All of `a` as a decimal number. False when it is not one or does not fit min..max; *ret is set on success
 * only. */
bool sv_i64(struct sv a, int64_t min, int64_t max, int64_t *ret);
bool sv_f64(struct sv a, double *ret);

#endif
