/* jsonnum.c - scan, print and compare JSON numbers by their digits. */
#include "common/jsonnum.h"

#include "common/sv.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest integer that a double holds exactly together with all smaller ones. */
#define EXACT_MAX 9007199254740992.0 /* 2^53 */

enum { PLAIN_DIGITS = 15, EXPONENT_MAX = 100000 };

static size_t digits(const char *p, size_t len)
{
    size_t n = 0;

    while (n < len && sv_is_digit(p[n]))
        n++;
    return n;
}

size_t jsonnum_scan(const char *p, size_t len, bool *ret_plain)
{
    size_t i = len && p[0] == '-' ? 1 : 0;
    size_t whole = digits(p + i, len - i);

    *ret_plain = whole && whole <= PLAIN_DIGITS && !(i == 1 && p[i] == '0');
    if (whole == 0 || (whole > 1 && p[i] == '0'))
        return 0;
    i += whole;
    if (i < len && p[i] == '.') {
        size_t fraction = digits(p + i + 1, len - i - 1);
        if (!fraction)
            return 0;
        i += 1 + fraction;
        *ret_plain = false;
    }
    if (i < len && (p[i] == 'e' || p[i] == 'E')) {
        size_t sign = i + 1 < len && (p[i + 1] == '+' || p[i + 1] == '-') ? 1 : 0;
        size_t exponent = digits(p + i + 1 + sign, len - i - 1 - sign);
        if (!exponent)
            return 0;
        i += 1 + sign + exponent;
        *ret_plain = false;
    }
    return i;
}

bool jsonnum_print(double v, char out[JSONNUM_PRINT_BYTES])
{
    if (!isfinite(v))
        return false;
    if (v == trunc(v) && fabs(v) <= EXACT_MAX) {
        snprintf(out, JSONNUM_PRINT_BYTES, "%lld", (long long)v);
        return true;
    }
    /* 0.1 must not become 0.10000000000000001, a larger quantity. */
    for (int n = 15; n <= 17; n++) {
        snprintf(out, JSONNUM_PRINT_BYTES, "%.*g", n, v);
        if (strtod(out, NULL) == v)
            break;
    }
    return true;
}

/* 0.DIGITS times ten to the power of `exponent`; no digits: zero. */
struct decimal {
    bool negative;
    char digits[JSONNUM_MAX_BYTES + 1];
    int n;
    long exponent;
};

static struct decimal decimal_of(const char *text)
{
    struct decimal d = {.negative = *text == '-'};
    bool fraction = false;

    for (text += d.negative; sv_is_digit(*text) || *text == '.'; text++) {
        if (*text == '.') {
            fraction = true;
            continue;
        }
        if (d.n == 0 && *text == '0') {
            d.exponent -= fraction;
            continue;
        }
        d.exponent += !fraction;
        if (d.n < JSONNUM_MAX_BYTES)
            d.digits[d.n++] = *text;
    }
    if (*text == 'e' || *text == 'E') {
        long e = strtol(text + 1, NULL, 10);
        d.exponent += e > EXPONENT_MAX ? EXPONENT_MAX : e < -EXPONENT_MAX ? -EXPONENT_MAX : e;
    }
    while (d.n > 0 && d.digits[d.n - 1] == '0')
        d.n--;
    return d;
}

bool jsonnum_is_double(const char *text, double v)
{
    char print[JSONNUM_PRINT_BYTES];
    struct decimal a = decimal_of(text);
    int64_t whole;

    if (a.n == 0)
        return v == 0;
    if (sv_i64(sv_from(text), INT64_MIN, INT64_MAX, &whole))
        return fabs(v) < 0x1p63 && (int64_t)v == whole;
    if (!jsonnum_print(v, print))
        return false;
    struct decimal b = decimal_of(print);
    return a.negative == b.negative && a.n == b.n && a.exponent == b.exponent &&
           memcmp(a.digits, b.digits, (size_t)a.n) == 0;
}
