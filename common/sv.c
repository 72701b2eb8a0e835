/* sv.c - string views: parsing and comparing. */
#include "common/sv.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sv sv_from(const char *s)
{
    return (struct sv){s, s ? strlen(s) : 0};
}

bool sv_eq(struct sv a, const char *s)
{
    return a.len == strlen(s) && memcmp(a.p, s, a.len) == 0;
}

bool sv_starts(struct sv a, const char *prefix)
{
    size_t len = strlen(prefix);

    return a.len >= len && memcmp(a.p, prefix, len) == 0;
}

bool sv_ends(struct sv a, const char *suffix)
{
    size_t len = strlen(suffix);

    return a.len >= len && memcmp(a.p + a.len - len, suffix, len) == 0;
}

bool sv_contains(struct sv a, const char *part)
{
    return memmem(a.p, a.len, part, strlen(part)) != NULL;
}

struct sv sv_trim(struct sv a)
{
    while (a.len && isspace((unsigned char)a.p[0])) {
        a.p++;
        a.len--;
    }
    while (a.len && isspace((unsigned char)a.p[a.len - 1]))
        a.len--;
    return a;
}

bool sv_next(struct sv *rest, char sep, struct sv *part)
{
    if (!rest->p)
        return false;
    const char *cut = rest->len ? memchr(rest->p, sep, rest->len) : NULL;
    if (!cut) {
        *part = *rest;
        *rest = (struct sv){NULL, 0};
        return true;
    }
    *part = (struct sv){rest->p, (size_t)(cut - rest->p)};
    rest->len -= part->len + 1;
    rest->p = cut + 1;
    return true;
}

/* Copy into `out` for strtoll and strtod. False: it is empty or too long, has a NUL or begins with a space. */
static bool number_text(struct sv a, char out[static 64])
{
    if (!a.len || a.len >= 64 || isspace((unsigned char)a.p[0]))
        return false;
    memcpy(out, a.p, a.len);
    out[a.len] = '\0';
    return strlen(out) == a.len;
}

bool sv_i64(struct sv a, int64_t min, int64_t max, int64_t *ret)
{
    char text[64];
    char *end;

    if (!number_text(a, text))
        return false;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || *end || end == text || v < min || v > max)
        return false;
    *ret = v;
    return true;
}

bool sv_f64(struct sv a, double *ret)
{
    char text[64];
    char *end;

    if (!number_text(a, text))
        return false;
    errno = 0;
    double v = strtod(text, &end);
    if (*end || end == text || !isfinite(v))
        return false;
    *ret = v;
    return true;
}
