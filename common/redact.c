/* redact.c - find secrets in text by tables of their prefixes and their names, and replace them. */
#include "common/redact.h"

#include "common/cleanup.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" DIGITS "_.-"
#define BLANK " \t"
#define QUOTES "\"'`"

enum { SHAPE_BYTES = 16, VALUE_BYTES = 8 }; /* at least */

/* A word with such a prefix is a secret if its rest contains a digit. */
static const char *const SHAPES[] = {
    "hf_",  "ghp_", "gho_",  "ghu_",  "ghs_",   "ghr_", "github_pat_", "glpat-",    "AKIA",      "ASIA",
    "AIza", "sk-",  "xoxb-", "xoxp-", "nvapi-", "npm_", "pypi-",       "dckr_pat_", "wandb_v1_", "eyJ"};

/* The value after a name that contains this text (`ends`: ends in it) is a secret. MAYBE: or a count, or a
 * word of ordinary text. BEARER: the value may follow without = or colon. HEADER: the whole line is secret if
 * its value begins with one of SCHEMES. */
static const struct name {
    const char *text;
    bool ends;
    enum { ANY, MAYBE, BEARER, HEADER } value;
} NAMES[] = {{"authorization", false, HEADER},
             {"secret", false, ANY},
             {"passw", false, ANY},
             {"passphrase", false, ANY},
             {"credential", false, ANY},
             {"token", true, MAYBE},
             {"key", true, MAYBE},
             {"bearer", true, BEARER}};
static const char *const SCHEMES[] = {"basic ", "bearer ", "digest ", "negotiate ", "token ", "aws4-"};

/* Bytes to keep, then bytes of the secret. No secret: {0, 0}. */
struct found {
    size_t keep, hide;
};

static const struct found NONE = {0, 0};

static struct found userinfo(const char *p)
{
    const size_t len = strncmp(p, "://", 3) == 0 ? strcspn(p + 3, "/?# \t\r\n<>|\\" QUOTES) : 0;
    const char *at = len ? memrchr(p + 3, '@', len) : NULL;

    return at ? (struct found){3, (size_t)(at - p) - 3} : NONE;
}

static struct found private_key(const char *p)
{
    static const char MARK[] = "PRIVATE KEY-----";
    const char *mark = strncmp(p, "-----BEGIN ", 11) == 0 ? strstr(p, MARK) : NULL;

    if (!mark || memchr(p, '\n', (size_t)(mark - p)))
        return NONE;
    const char *key = mark + strlen(MARK), *end = strstr(key, "-----END");
    return (struct found){(size_t)(key - p), end ? (size_t)(end - key) : strlen(key)};
}

static struct found by_shape(const char *p, bool wandb)
{
    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        const size_t keep = strlen(SHAPES[i]);
        size_t len = strncmp(p, SHAPES[i], keep) == 0 ? strspn(p + keep, WORD) : 0;
        while (len && p[keep + len - 1] == '.') /* the period of a sentence */
            len--;
        if (len >= SHAPE_BYTES && strcspn(p + keep, DIGITS) < len)
            return (struct found){keep, len};
    }
    return wandb && strspn(p, DIGITS "abcdef") == 40 && !isalnum((unsigned char)p[40]) ? (struct found){0, 40}
                                                                                       : NONE;
}

static const struct name *of_secret(const char *name, size_t len)
{
    char end[64] = "";
    const size_t n = len < sizeof(end) ? len : sizeof(end) - 1;

    memcpy(end, name + len - n, n);
    for (const struct name *w = NAMES; w < NAMES + ARRAY_LEN(NAMES); w++)
        for (const char *at = end; (at = strcasestr(at, w->text)); at++)
            if (!w->ends || !at[strlen(w->text)])
                return w;
    return NULL;
}

bool redact_names_secret(const char *name)
{
    return of_secret(name, strlen(name)) != NULL;
}

/* Skip quotes, also those escaped in a JSON string. */
static const char *skip_quotes(const char *p)
{
    while (strchr(QUOTES, *p) ? *p != '\0' : p[0] == '\\' && p[1] && strchr(QUOTES, p[1]))
        p++;
    return p;
}

/* The length of a value: up to the closing quote, or without quotes up to a blank, a quote or the end of the
 * line. JSON text has "\n" for that end. */
static size_t value_length(const char *p, char quote, bool line)
{
    size_t n = 0;

    for (; p[n] && p[n] != '\n' && p[n] != '\r'; n++) {
        const bool ends = quote ? p[n] == quote : strchr(line ? QUOTES : QUOTES BLANK, p[n]) != NULL;
        if (ends || (p[n] == '\\' && p[n + 1] && strchr("nrtu\\" QUOTES, p[n + 1])))
            break;
    }
    return n;
}

/* Match NAME=VALUE, NAME: VALUE, ["NAME"] = VALUE; for an option and for "Bearer" also NAME VALUE. */
static struct found by_name(const char *p)
{
    const size_t len = strspn(p, WORD);
    const struct name *name = of_secret(p, len);
    const char *behind = skip_quotes(p + len);
    const bool item = behind > p + len && *behind == ']';
    behind += item;
    const char *sep = behind + strspn(behind, BLANK);
    const bool equals = sep[0] == '=' && sep[1] != '=';
    const bool colon = !item && sep[0] == ':' && !strchr(":/", sep[1]);
    const bool option = p[0] == '-', bearer = name && name->value == BEARER && len == strlen(name->text);

    if (!name || !(equals || colon || ((option || bearer) && !item && sep > behind && *sep != '-')))
        return NONE;
    const char *value = sep + (equals || colon);
    value += strspn(value, BLANK);
    const char *begin = skip_quotes(value);
    const bool prose = begin == value && (item || !equals) && !option;
    bool line = false;
    for (size_t i = 0; name->value == HEADER && i < ARRAY_LEN(SCHEMES); i++)
        line |= strncasecmp(begin, SCHEMES[i], strlen(SCHEMES[i])) == 0;
    const size_t n = value_length(begin, begin > value ? begin[-1] : '\0', line);
    const bool plural = prose && tolower((unsigned char)p[len - 1]) == 's'; /* "credentials: none found" */
    if (line || (name->value == ANY && !plural))
        return (struct found){(size_t)(begin - p), n};
    const bool digit = strcspn(begin, DIGITS) < n, number = strspn(begin, DIGITS "._+-") >= n;
    const size_t least = prose && strcmp(name->text, "key") == 0 ? 2 * VALUE_BYTES : VALUE_BYTES;
    const bool secret = strspn(begin, WORD "+/=~") >= least && !number && (digit || !prose);
    return secret ? (struct found){(size_t)(begin - p), n} : NONE;
}

static struct found find_secret(const char *p, bool word_begins, bool wandb)
{
    struct found f = userinfo(p);

    if (!f.hide && word_begins)
        f = private_key(p);
    if (!f.hide && word_begins)
        f = by_shape(p, wandb);
    return f.hide || !word_begins ? f : by_name(p);
}

void redact_secrets(char *s)
{
    const bool wandb = strcasestr(s, "wandb") != NULL;
    bool word_begins = true;
    char *to = s;

    for (const char *p = s; *p;) {
        const bool escape =
            p[0] == '\\' && p[1] && strchr("nrt", p[1]); /* the escape of a line's end, in JSON */
        const struct found f = escape ? NONE : find_secret(p, word_begins, wandb);
        const size_t keep = f.hide ? f.keep : escape ? 2 : 1;
        memmove(to, p, keep);
        to += keep;
        p += keep + f.hide;
        for (size_t i = 0; i < f.hide && i < 3; i++)
            *to++ = '*';
        word_begins = escape || f.hide || !strchr(WORD, p[-1]);
    }
    *to = '\0';
}
