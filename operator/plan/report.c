/* report.c - parse the launcher's JSON report, which may be cut at any byte. */
#include "operator/plan/report.h"

#include "common/contract.h"

#include <stdlib.h>
#include <string.h>

enum { SIGNAL_MAX = 64 };

/* Goes over `text` at the beginning of *rest. */
static bool take(struct sv *rest, const char *text)
{
    if (!sv_starts(*rest, text))
        return false;
    rest->p += strlen(text);
    rest->len -= strlen(text);
    return true;
}

/* `"<key>":<number>` and the comma or brace behind it: a number that runs to the end may have been cut. */
static bool take_number(struct sv *rest, const char *key, int64_t min, int64_t max, int32_t *ret)
{
    struct sv s = *rest;
    size_t len = 0;
    int64_t v;

    if (!take(&s, key))
        return false;
    while (len < s.len && s.p[len] >= '0' && s.p[len] <= '9')
        len++;
    if (len == s.len || (s.p[len] != ',' && s.p[len] != '}') || !sv_i64((struct sv){s.p, len}, min, max, &v))
        return false;
    *ret = (int32_t)v;
    *rest = (struct sv){s.p + len, s.len - len};
    return true;
}

/* The bytes between the quotes; to the end of the text when there is no second one. */
static bool take_string(struct sv *rest, const char *key, struct sv *ret)
{
    size_t len = 0;

    if (!take(rest, key))
        return false;
    while (len < rest->len && rest->p[len] != '"')
        len += rest->p[len] == '\\' && len + 1 < rest->len ? 2 : 1;
    *ret = (struct sv){rest->p, len};
    rest->p += len;
    rest->len -= len;
    (void)take(rest, "\"");
    return true;
}

bool report_parse(const char *message, struct report *ret)
{
    struct sv rest = sv_from(message);
    struct report r = {.message = {"", 0}};
    struct sv host;

    if (!take_number(&rest, "{\"rank\":", 0, INT32_MAX, &r.rank) ||
        !take_number(&rest, ",\"exitCode\":", 1, 255, &r.exit_code))
        return false;
    if (take_number(&rest, ",\"signal\":", 1, SIGNAL_MAX, &r.signal) &&
        r.exit_code != EXIT_CODE_SIGNAL_BASE + r.signal)
        return false;
    (void)take_string(&rest, ",\"host\":\"", &host);
    r.no_progress =
        take_string(&rest, ",\"message\":\"", &r.message) && sv_starts(rest, ",\"noProgress\":true}");
    *ret = r;
    return true;
}

/* What stands for the escape whose letter is at *p, which is moved behind it. */
static char unescape(const char **p, const char *end)
{
    char kind = *(*p)++;
    unsigned v = 0;
    int digits = 0;

    if (kind != 'u')
        return kind == 'n' ? '\n' : strchr("bfrt", kind) ? ' ' : kind;
    for (; digits < 4 && *p < end && strchr("0123456789abcdefABCDEF", **p); digits++, (*p)++)
        v = v * 16 + (unsigned)(**p <= '9' ? **p - '0' : (**p | 0x20) - 'a' + 10);
    if (v == '\n')
        return '\n';
    if (v < 0x20 || v == 0x7f)
        return ' ';
    return v < 0x7f ? (char)v : '?';
}

char *report_message(const struct report *r, struct arena *a)
{
    char *out = arena_alloc(a, r->message.len + 1);
    const char *end = r->message.p + r->message.len;
    size_t n = 0;

    for (const char *p = r->message.p; p < end;) {
        char c = *p++;
        if (c == '\\' && p == end)
            break;
        if (c == '\\')
            c = unescape(&p, end);
        out[n++] = c == '\n' || (unsigned char)c >= 0x20 ? c : ' ';
    }
    out[n] = '\0';
    return out;
}
