/* fields.c - find the numbers of a line of output, with the words in front of them and the units behind them. */
#include "launcher/progress/fields.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Of a name of these parts no progress of a training is told; a stem stands for every word that begins with it. */
static const char *const ASIDE[] = {"val", "valid", "test", "tests", "cv", "map", "dev", "warmup", NULL};
static const char *const ASIDE_STEMS[] = {
    "validat", "eval",   "testing", "sanity",  "predict",  "infer",      "download",   "fetch",
    "load",    "filter", "tokeniz", "extract", "generate", "generating", "generation", "preprocess",
    "prepar",  "cache",  "caching", "save",    "saving",   "shard",      "sampling",   NULL};
/* Where the word in front of such a key tells what is counted, and not which metric. */
static const char *const PLACES[] = {"epoch", "epochs",  "step",      "steps",  "iter", "iters",
                                     "batch", "batches", "iteration", "update", NULL};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_letter(c) || sv_is_digit(c) || c == '_' || c == '/';
}

static bool next_part(struct sv *rest, struct sv *part)
{
    size_t n = 0, skip = 0;

    while (skip < rest->len && !is_letter(rest->p[skip]) && !sv_is_digit(rest->p[skip]))
        skip++;
    *rest = (struct sv){rest->p + skip, rest->len - skip};
    while (n < rest->len && (is_letter(rest->p[n]) || sv_is_digit(rest->p[n])))
        n++;
    *part = (struct sv){rest->p, n};
    *rest = (struct sv){rest->p + n, rest->len - n};
    return n > 0;
}

/* Of a letter; other bytes stay none. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool equals(struct sv part, const char *word)
{
    return lower(*part.p) == *word && strlen(word) == part.len && strncasecmp(part.p, word, part.len) == 0;
}

static bool begins(struct sv part, const char *stem)
{
    return lower(*part.p) == *stem && strlen(stem) <= part.len &&
           strncasecmp(part.p, stem, strlen(stem)) == 0;
}

static bool any(struct sv part, const char *const *words, bool (*fits)(struct sv part, const char *word))
{
    for (; *words; words++)
        if (fits(part, *words))
            return true;
    return false;
}

bool fields_has(struct sv name, const char *const *words)
{
    struct sv part;

    while (next_part(&name, &part))
        if (any(part, words, equals))
            return true;
    return false;
}

bool fields_only(struct sv name, const char *const *words)
{
    struct sv part;

    while (next_part(&name, &part))
        if (!any(part, words, equals))
            return false;
    return true;
}

bool fields_aside(struct sv name)
{
    struct sv part;

    while (next_part(&name, &part))
        if (any(part, ASIDE, equals) || any(part, ASIDE_STEMS, begins))
            return true;
    return false;
}

struct sv fields_last_part(struct sv name)
{
    struct sv part, last = {name.p, 0};

    while (next_part(&name, &part))
        last = part;
    return last;
}

struct scan {
    const char *p, *end;
    struct sv before, key; /* the last two words, as long as nothing else came */
    bool aside;
};

static char at(const struct scan *s, ptrdiff_t i)
{
    return s->end - s->p > i ? s->p[i] : '\0';
}

static void note(struct scan *s, struct sv word)
{
    s->aside = s->aside || (word.len && fields_aside(word));
}

static void forget_words(struct scan *s)
{
    note(s, s->before);
    note(s, s->key);
    s->before = s->key = (struct sv){s->p, 0};
}

/* Digits of which the value is *v, with commas between groups of three. Returns how many digits; 0: there are none. */
static int take_digits(struct scan *s, double *v)
{
    int n = 0;

    *v = 0;
    for (;;) {
        if (sv_is_digit(at(s, 0))) {
            *v = *v * 10 + (*s->p++ - '0');
            n++;
        } else if (n > 0 && n <= 15 && at(s, 0) == ',' && sv_is_digit(at(s, 1)) && sv_is_digit(at(s, 2)) &&
                   sv_is_digit(at(s, 3)) && !sv_is_digit(at(s, 4)))
            s->p++;
        else
            return n;
    }
}

static double power_of_ten(int exponent)
{
    static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    return exponent < (int)(sizeof(POWERS) / sizeof(*POWERS)) ? POWERS[exponent] : pow(10, exponent);
}

static double scaled(double v, int exponent)
{
    return exponent < 0 ? v / power_of_ten(-exponent) : v * power_of_ten(exponent);
}

static int take_exponent(struct scan *s)
{
    const char sign = at(s, 1);
    const int digits = sign == '-' || sign == '+' ? 2 : 1;
    int e = 0;

    if ((at(s, 0) != 'e' && at(s, 0) != 'E') || !sv_is_digit(at(s, digits)))
        return 0;
    for (s->p += digits; sv_is_digit(at(s, 0)); s->p++)
        e = e < 1000 ? e * 10 + (*s->p - '0') : e;
    return sign == '-' ? -e : e;
}

/* The letter that tqdm puts for thousands. */
static int take_scale(struct scan *s)
{
    static const char SCALES[] = "kMGT";
    const char *scale = at(s, 0) ? strchr(SCALES, at(s, 0)) : NULL;

    if (!scale || is_word(at(s, 1)) != (at(s, 1) == '/'))
        return 0;
    s->p++;
    return 3 * (int)(scale - SCALES + 1);
}

/* An unsigned number; *whole becomes false unless it is one of digits only. False: there is none. */
static bool take_number(struct scan *s, double *v, bool *whole)
{
    double fraction = 0;
    int decimals = 0;
    const char *begin = s->p;

    if (!take_digits(s, v))
        return false;
    const bool digits_only = !(at(s, 0) == '.' && sv_is_digit(at(s, 1)));
    for (s->p += !digits_only; !digits_only && sv_is_digit(at(s, 0)); s->p++)
        if (decimals < 15) {
            fraction = fraction * 10 + (*s->p - '0');
            decimals++;
        }
    /* one division: the double that the digits stand for, where it has 15 at most */
    *v = decimals ? (*v * power_of_ten(decimals) + fraction) / power_of_ten(decimals) : *v;
    const int exponent = take_exponent(s), scale = take_scale(s);
    *v = scaled(*v, exponent + scale);
    *whole = *whole && ((digits_only && exponent == 0) || (scale && *v == floor(*v)));
    return s->p - begin < 300;
}

static void skip_blanks(struct scan *s)
{
    while (at(s, 0) == ' ' || at(s, 0) == '\t')
        s->p++;
}

/* "/10" or " of 10"; false, and the place as it was: there is none. */
static bool take_of(struct scan *s, double *of, bool *whole)
{
    const struct scan was = *s;
    double v;

    skip_blanks(s);
    if (at(s, 0) == '/')
        s->p++;
    else if (s->p > was.p && at(s, 0) == 'o' && at(s, 1) == 'f' && at(s, 2) == ' ')
        s->p += 2;
    else {
        *s = was;
        return false;
    }
    skip_blanks(s);
    if (take_number(s, &v, whole)) {
        *of = v;
        return true;
    }
    *s = was;
    return false;
}

static struct sv take_unit(struct scan *s)
{
    const struct scan was = *s;
    size_t n = 0;

    if (at(s, 0) == ' ')
        s->p++;
    if (at(s, 0) == '%')
        n = 1;
    while (is_letter(at(s, (ptrdiff_t)n)) || (n > 0 && at(s, (ptrdiff_t)n) == '/'))
        n++;
    const struct sv unit = {s->p, n};
    const char next = at(s, (ptrdiff_t)n);
    /* a word behind a blank may be the next number's key, unless it is a rate */
    *s = was;
    if (unit.p > was.p && (next == ':' || next == '='))
        return (struct sv){was.p, 0};
    if (unit.p == was.p || (n && (memchr(unit.p, '/', n) || *unit.p == '%')))
        s->p = unit.p + n;
    return n ? unit : (struct sv){was.p, 0};
}

/* Behind "]" or ")", and "(30%)]" in front of it, which is a *part. */
static bool take_close(struct scan *s, bool *part)
{
    const struct scan was = *s;

    skip_blanks(s);
    if (at(s, 0) == '(')
        while (at(s, 0) && at(s, 0) != ']')
            *part = *s->p++ == '%' || *part;
    if (at(s, 0) == ']' || at(s, 0) == ')') {
        s->p++;
        return true;
    }
    *s = was;
    *part = false;
    return false;
}

/* At a digit. False: the number says nothing; the place is behind it all the same. */
static bool take_field(struct scan *s, char in_front, bool negative, struct field *f)
{
    *f = (struct field){.key = s->key, .before = s->before, .of = NAN, .whole = true, .start = s->p};
    bool fits = take_number(s, &f->value, &f->whole);
    if (take_of(s, &f->of, &f->whole)) {
        /* a date, a path */
        fits = fits && in_front != '/' && at(s, 0) != '/' && !negative;
        while (at(s, 0) == '/' || sv_is_digit(at(s, 0)))
            s->p++;
    }
    f->value = negative ? -f->value : f->value;
    f->unit = take_unit(s);
    f->boxed = (in_front == '[' || in_front == '(') && take_close(s, &f->part);
    f->end = s->p;
    return fits && isfinite(f->value) && !isinf(f->of);
}

/* The words in front of a number that has them are its names, and tell of nothing else; but behind "Best metric: 31.0" an
 * epoch is that of the best one. */
static void name(struct scan *s, struct field *f)
{
    static const char *const BEST[] = {"best", NULL};

    s->aside = s->aside || fields_has(f->before, BEST) || fields_has(f->key, BEST);
    if (f->key.len && fields_has(fields_last_part(f->key), PLACES))
        note(s, f->before);
    f->aside = s->aside;
    s->before = s->key = (struct sv){s->p, 0};
}

static void take_word(struct scan *s)
{
    const char *begin = s->p;

    while (is_word(at(s, 0)))
        s->p++;
    note(s, s->before);
    s->before = s->key;
    s->key = (struct sv){begin, (size_t)(s->p - begin)};
}

int fields_scan(struct sv line, struct field out[static FIELDS_MAX])
{
    struct scan s = {.p = line.p, .end = line.p + line.len, .before = {line.p, 0}, .key = {line.p, 0}};
    char in_front = ' '; /* the last byte that was no blank, while only such stand between word and number */
    int n = 0;

    while (s.p < s.end && n < FIELDS_MAX) {
        const char c = *s.p;
        if (is_letter(c) || c == '_') {
            take_word(&s);
            in_front = ' ';
        } else if (sv_is_digit(c)) {
            const bool negative = in_front == '-';
            if (take_field(&s, in_front, negative, &out[n])) {
                name(&s, &out[n]);
                n++;
            } else
                forget_words(&s);
            in_front = ' ';
        } else {
            s.p++;
            if (c == '-' && sv_is_digit(at(&s, 0))) /* "-3", but 3 of "Epoch-3" */
                in_front = s.p - 1 > line.p && is_word(s.p[-2]) ? ' ' : '-';
            else if (c != ' ' && c != '\t') {
                in_front = c;
                if (!strchr(":=#\"'[(", c) || !c)
                    forget_words(&s);
            }
        }
    }
    return n;
}
