/* line_tokens.c - find the numbers in a line of output, with the words before them. */
#include "launcher/progress/line_tokens.h"

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

bool line_tokens_is(struct sv word, const char *const *list)
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

/* The first run of letters that is in the list, or that is not. */
static const char *find(struct sv text, const char *const *list, bool is_one)
{
    while (text.len) {
        size_t n = 0;
        while (n < text.len && is_letter(text.p[n]))
            n++;
        if (n && line_tokens_is((struct sv){text.p, n}, list) == is_one)
            return text.p;
        text = sv_skip(text, n + (n < text.len));
    }
    return NULL;
}

const char *line_tokens_find(struct sv text, const char *const *list)
{
    return find(text, list, true);
}

bool line_tokens_all(struct sv text, const char *const *list)
{
    return !find(text, list, false);
}

static size_t digits_end(struct sv s, size_t n)
{
    while (sv_is_digit(at(s, n)))
        n++;
    return n;
}

/* Take an unsigned number, with commas between groups of three. *whole becomes false unless it has digits
 * only. NAN: it is too long. */
static double take_number(struct sv *rest, bool *whole)
{
    char digits[40];
    size_t n = digits_end(*rest, 0), len = 0;
    double v;

    while (at(*rest, n) == ',' && digits_end(*rest, n + 1) == n + 4)
        n += 4;
    const size_t integer = n;
    if (at(*rest, n) == '.' && sv_is_digit(at(*rest, n + 1)))
        n = digits_end(*rest, n + 1);
    const bool sign = at(*rest, n + 1) == '-' || at(*rest, n + 1) == '+';
    if ((at(*rest, n) | 0x20) == 'e' && sv_is_digit(at(*rest, n + 1 + sign)))
        n = digits_end(*rest, n + 1 + sign);
    *whole = *whole && n == integer;
    for (size_t i = 0; i < n && len < sizeof(digits); i++)
        if (rest->p[i] != ',')
            digits[len++] = rest->p[i];
    *rest = sv_skip(*rest, n);
    return len < sizeof(digits) && sv_f64((struct sv){digits, len}, &v) ? v : NAN;
}

static struct sv skip_blanks(struct sv s)
{
    while (at(s, 0) == ' ')
        s = sv_skip(s, 1);
    return s;
}

/* Take "/10" or " / 10". NAN: there is none. */
static double take_of(struct sv *rest, bool *whole)
{
    struct sv s = skip_blanks(*rest);

    if (at(s, 0) != '/')
        return NAN;
    s = skip_blanks(sv_skip(s, 1));
    if (!sv_is_digit(at(s, 0)))
        return NAN;
    *rest = s;
    return take_number(rest, whole);
}

static void take_word(struct line_tokens *t)
{
    size_t n = 0;

    while (is_word(at(t->rest, n)))
        n++;
    t->before = t->cut ? (struct sv){t->rest.p, 0} : t->key;
    t->key = (struct sv){t->rest.p, n};
    t->cut = false;
    t->rest = sv_skip(t->rest, n);
}

static void forget_words(struct line_tokens *t)
{
    t->key = t->before = (struct sv){t->rest.p, 0};
}

/* Read the number at a digit. False: it is part of a word, path or date. */
static bool read_number(struct line_tokens *t, struct number *ret)
{
    *ret = (struct number){.key = t->key, .before = t->before, .count = true, .start = t->rest.p};
    ret->value = take_number(&t->rest, &ret->count);
    ret->of = take_of(&t->rest, &ret->count);
    ret->end = t->rest.p;
    ret->count =
        ret->count && !is_word(at(t->rest, 0)) && at(t->rest, 0) != '%'; /* not "3GB", a path, a date */
    while (is_word(at(t->rest, 0)))
        t->rest = sv_skip(t->rest, 1);
    forget_words(t);
    return isfinite(ret->value);
}

bool line_tokens_next(struct line_tokens *t, struct number *ret)
{
    while (t->rest.len) {
        const char c = *t->rest.p;
        if (sv_is_digit(c)) {
            if (read_number(t, ret))
                return true;
        } else if (is_letter(c) || c == '_') {
            take_word(t);
        } else {
            if (!c || !strchr(" \t:=#\"'[(", c))
                forget_words(t);
            t->cut = t->cut || (c != ' ' && c != '\t');
            t->rest = sv_skip(t->rest, 1);
        }
    }
    return false;
}
