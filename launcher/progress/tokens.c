/* tokens.c - find the numbers of a line of output, with the words in front of them. */
#include "launcher/progress/tokens.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_letter(c) || sv_is_digit(c) || c == '_' || c == '/';
}

static char at(struct sv s, size_t i)
{
    return i < s.len ? s.p[i] : '\0';
}

bool tokens_is(struct sv word, const char *const *list)
{
    for (; word.len && *list; list++) {
        if ((*word.p | 0x20) != **list)
            continue;
        const size_t n = strcspn(*list, "*");
        if (((*list)[n] ? n <= word.len : n == word.len) && strncasecmp(word.p, *list, n) == 0)
            return true;
    }
    return false;
}

bool tokens_has(struct sv text, const char *const *list)
{
    while (text.len) {
        size_t n = 0;
        while (n < text.len && (is_letter(text.p[n]) || sv_is_digit(text.p[n])))
            n++;
        if (tokens_is((struct sv){text.p, n}, list))
            return true;
        text = sv_skip(text, n + (n < text.len));
    }
    return false;
}

static size_t blanks(struct sv s)
{
    size_t n = 0;

    while (at(s, n) == ' ' || at(s, n) == '\t')
        n++;
    return n;
}

static bool is_group(struct sv s, size_t i)
{
    return at(s, i) == ',' && sv_is_digit(at(s, i + 1)) && sv_is_digit(at(s, i + 2)) &&
           sv_is_digit(at(s, i + 3)) && !sv_is_digit(at(s, i + 4));
}

/* Take an unsigned number with commas between groups of three. *whole becomes false unless it is one of digits only. Of one
 * that is too long for a double the value is NAN. */
static double take_number(struct sv *rest, bool *whole)
{
    char digits[40];
    size_t n = 0, len = 0;
    double v;

    for (bool point = false, exponent = false;; n++) {
        const char c = at(*rest, n), next = at(*rest, n + 1);
        if (!point && !exponent && n > 0 && is_group(*rest, n))
            continue;
        const bool sign = (next == '-' || next == '+') && sv_is_digit(at(*rest, n + 2));
        const bool dot = c == '.' && !point && !exponent && sv_is_digit(next),
                   e = (c == 'e' || c == 'E') && !exponent && (sv_is_digit(next) || sign);
        if (!sv_is_digit(c) && !dot && !e)
            break;
        point = point || dot;
        exponent = exponent || e;
        *whole = *whole && !dot && !e;
        for (size_t i = n; i <= n + (e && sign) && len < sizeof(digits); i++)
            digits[len++] = rest->p[i];
        n += e && sign;
    }
    *rest = sv_skip(*rest, n);
    return len < sizeof(digits) && sv_f64((struct sv){digits, len}, &v) ? v : NAN;
}

/* Take "/10" or " of 10". NAN: there is none. */
static double take_of(struct sv *rest, bool *whole)
{
    struct sv s = sv_skip(*rest, blanks(*rest));

    if (at(s, 0) == '/')
        s = sv_skip(s, 1);
    else if (s.p > rest->p && sv_starts(s, "of "))
        s = sv_skip(s, 3);
    else
        return NAN;
    s = sv_skip(s, blanks(s));
    if (!sv_is_digit(at(s, 0)))
        return NAN;
    *rest = s;
    return take_number(rest, whole);
}

static void take_word(struct tokens *t)
{
    size_t n = 0;

    while (is_word(at(t->rest, n)))
        n++;
    t->before = t->cut ? (struct sv){t->rest.p, 0} : t->key;
    t->key = (struct sv){t->rest.p, n};
    t->cut = false;
    t->rest = sv_skip(t->rest, n);
}

/* At a digit. False: the number says nothing. */
static bool read_number(struct tokens *t, char in_front, struct number *ret)
{
    *ret = (struct number){.key = t->key, .before = t->before, .count = true, .start = t->rest.p};
    const double v = take_number(&t->rest, &ret->count);
    ret->of = take_of(&t->rest, &ret->count);
    ret->end = t->rest.p;
    ret->value = in_front == '-' ? -v : v;
    const char next = at(t->rest, 0);
    /* not "3GB", a path, a date; but tqdm's "20it [" */
    ret->count = ret->count && (!is_word(next) || sv_starts(t->rest, "it [")) && next != '%' &&
                 !(next == '.' && sv_is_digit(at(t->rest, 1)));
    while (is_word(at(t->rest, 0)))
        t->rest = sv_skip(t->rest, 1);
    t->key = t->before = (struct sv){t->rest.p, 0};
    return isfinite(v);
}

bool tokens_next(struct tokens *t, struct number *ret)
{
    char in_front = ' ';

    while (t->rest.len) {
        const char c = *t->rest.p;
        if (sv_is_digit(c)) {
            if (read_number(t, in_front, ret))
                return true;
        } else if (is_letter(c) || c == '_')
            take_word(t);
        else {
            const bool negative = c == '-' && strchr(" \t:=([", in_front) && sv_is_digit(at(t->rest, 1));
            if (!negative && (!c || !strchr(" \t:=#\"'[(", c)))
                t->key = t->before = (struct sv){t->rest.p, 0};
            t->cut = t->cut || (c != ' ' && c != '\t');
            t->rest = sv_skip(t->rest, 1);
        }
        in_front = is_word(c) && c != '/' ? 'a' : c;
    }
    return false;
}
