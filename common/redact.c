/* redact.c - find secrets in text by their surroundings and by their shape, and replace them. */
#include "common/redact.h"

#include "common/cleanup.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define BLANK " \t"
#define QUOTES "\"'`"

enum { SHAPE_BYTES = 16 }; /* at least, with a digit, behind what a service's secrets begin with */

/* From here on: so many bytes are kept, then so many are the secret. No secret: {0, 0}. */
struct found {
    size_t keep, hide;
};

static const struct found NONE = {0, 0};

/* ---- by shape */

static const char *const BEGINS[] = {
    "hf_",  "ghp_", "gho_",  "ghu_",  "ghs_",   "ghr_", "github_pat_", "glpat-",    "AKIA",      "ASIA",
    "AIza", "sk-",  "xoxb-", "xoxp-", "nvapi-", "npm_", "pypi-",       "dckr_pat_", "wandb_v1_", "eyJ"};

static bool has_digit(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isdigit((unsigned char)p[i]))
            return true;
    return false;
}

static struct found by_shape(const char *p, bool wandb)
{
    for (size_t i = 0; i < ARRAY_LEN(BEGINS); i++) {
        size_t keep = strlen(BEGINS[i]);
        if (strncmp(p, BEGINS[i], keep) != 0)
            continue;
        size_t len = strspn(p + keep, ALNUM "_-.");
        while (len && p[keep + len - 1] == '.') /* of the sentence */
            len--;
        if (len >= SHAPE_BYTES && has_digit(p + keep, len))
            return (struct found){keep, len};
    }
    if (wandb && strspn(p, "0123456789abcdef") == 40 && strspn(p, ALNUM) == 40)
        return (struct found){0, 40};
    return NONE;
}

static struct found private_key(const char *p)
{
    static const char BEGIN[] = "-----BEGIN ", MARK[] = "PRIVATE KEY-----", END[] = "-----END";

    if (strncmp(p, BEGIN, strlen(BEGIN)) != 0)
        return NONE;
    const char *mark = strstr(p, MARK);
    if (!mark || memchr(p, '\n', (size_t)(mark - p)))
        return NONE;
    const char *key = mark + strlen(MARK);
    const char *end = strstr(key, END);
    return (struct found){(size_t)(key - p), end ? (size_t)(end - key) : strlen(key)};
}

static struct found userinfo(const char *p)
{
    if (strncmp(p, "://", 3) != 0)
        return NONE;
    size_t len = strcspn(p + 3, "/?# \t\r\n<>|\\" QUOTES);
    const char *at = memrchr(p + 3, '@', len);
    return at ? (struct found){3, (size_t)(at - p) - 3} : NONE;
}

/* ---- by name */

/* How surely a value behind this name is a secret. */
enum sure { SURE_NO, SURE_KEY, SURE_TOKEN, SURE_YES, SURE_LINE };

static bool ends_with(const char *name, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len >= n && strncasecmp(name + len - n, word, n) == 0;
}

static bool has_word(const char *name, size_t len, const char *word)
{
    for (size_t n = strlen(word); len >= n; name++, len--)
        if (strncasecmp(name, word, n) == 0)
            return true;
    return false;
}

static enum sure sure_of(const char *name, size_t len)
{
    static const char *const WORDS[] = {"secret", "passw", "passphrase", "credential"};

    if (has_word(name, len, "authorization"))
        return SURE_LINE;
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (has_word(name, len, WORDS[i]))
            return SURE_YES;
    if (ends_with(name, len, "token") || (len == 6 && strncasecmp(name, "bearer", 6) == 0))
        return SURE_TOKEN;
    return ends_with(name, len, "key") ? SURE_KEY : SURE_NO;
}

/* Quotes, also as they stand in a string of JSON. */
static const char *skip_quotes(const char *p)
{
    while (strchr(QUOTES, *p) ? *p != '\0' : p[0] == '\\' && p[1] && strchr(QUOTES, p[1]))
        p++;
    return p;
}

/* To the blank, the quote or the end of the line behind it; in quotes, to the closing one. A report in JSON writes "\n". */
static size_t value_length(const char *p, const char *quoted, bool line)
{
    size_t n = 0;

    for (; p[n] && p[n] != '\n' && p[n] != '\r'; n++) {
        if (quoted ? p[n] == *quoted : strchr(QUOTES, p[n]) != NULL)
            break;
        if (p[n] == '\\' && p[n + 1] && strchr("nrtu\\" QUOTES, p[n + 1]))
            break;
        if (!quoted && !line && strchr(BLANK, p[n]))
            break;
    }
    return n;
}

/* Whether a value is one, behind a name that may also stand for a count or a word of a language. Of its bytes `plain` are letters
 * and the like. `prose`: words may follow, too. */
static bool is_secret(enum sure sure, const char *value, size_t plain, size_t len, bool prose)
{
    if (sure >= SURE_YES)
        return len > 0;
    if (strspn(value, "0123456789._+-") >= len)
        return false;
    return !prose || (has_digit(value, len) && plain >= (sure == SURE_KEY ? 16 : 8));
}

/* Behind the name: "=" or ":", or for an option and for "Bearer" a blank. 0: nothing of these. */
static char separator(const char *name, const char **p)
{
    const char *behind = skip_quotes(*p);
    const char *at = behind + strspn(behind, BLANK);

    if ((*at == '=' && at[1] != '=') || (*at == ':' && at[1] != ':' && at[1] != '/')) {
        *p = at + 1;
        return *at;
    }
    bool option = name[0] == '-' || strncasecmp(name, "bearer", 6) == 0;
    *p = at;
    return option && behind < at && behind[0] != '\0' && *at != '-' ? ' ' : '\0';
}

/* Of the header: "Basic" and others, and behind it what the server checks. */
static bool has_scheme(const char *value)
{
    static const char *const SCHEMES[] = {"basic ", "bearer ", "digest ", "negotiate ", "token ", "aws4-"};

    for (size_t i = 0; i < ARRAY_LEN(SCHEMES); i++)
        if (strncasecmp(value, SCHEMES[i], strlen(SCHEMES[i])) == 0)
            return true;
    return false;
}

static struct found by_name(const char *p)
{
    size_t len = strspn(p, ALNUM "_.-");
    enum sure sure = sure_of(p, len);
    const char *value = p + len;
    char sep = sure != SURE_NO ? separator(p, &value) : '\0';

    if (!sep)
        return NONE;
    value += strspn(value, BLANK);
    const char *begin = skip_quotes(value);
    bool prose = begin == value && sep != '=' && p[0] != '-';
    if ((sure == SURE_LINE && !has_scheme(begin)) || (prose && tolower((unsigned char)p[len - 1]) == 's'))
        sure = SURE_TOKEN; /* "authorization: server message ...", "credentials: none found" */
    size_t plain = strspn(begin, ALNUM "_+/=.~-");
    if (sure < SURE_YES && plain < 8)
        return NONE;
    size_t n = value_length(begin, begin > value ? begin - 1 : NULL, sure == SURE_LINE);
    return is_secret(sure, begin, plain, n, prose) ? (struct found){(size_t)(begin - p), n} : NONE;
}

/* ---- all of them */

static struct found find(const char *p, bool word_begins, bool wandb)
{
    struct found f = userinfo(p);

    if (!f.hide && word_begins)
        f = private_key(p);
    if (!f.hide && word_begins)
        f = by_shape(p, wandb);
    if (!f.hide && word_begins)
        f = by_name(p);
    return f;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

void redact_secrets(char *s)
{
    static const char STARS[] = "***";
    bool wandb = strcasestr(s, "wandb") != NULL;
    char before = '\0', *to = s;

    for (const char *p = s; *p;) {
        if (p[0] == '\\' && p[1] && strchr("nrt", p[1])) { /* the end of a line, in JSON */
            *to++ = *p++;
            *to++ = *p++;
            before = '\0';
            continue;
        }
        struct found f = find(p, !is_word(before), wandb);
        size_t keep = f.hide ? f.keep : 1;
        before = f.hide ? '*' : *p;
        memmove(to, p, keep);
        to += keep;
        p += keep + f.hide;
        for (size_t i = 0; i < f.hide && i < strlen(STARS); i++)
            *to++ = STARS[i];
    }
    *to = '\0';
}
