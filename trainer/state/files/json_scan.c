/* json_scan.c - scan JSON from front to end without building a tree. */
#include "trainer/state/files/json_scan.h"

#include <string.h>

static void skip_space(struct json_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

bool json_scan_take(struct json_scan *s, char c)
{
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

bool json_scan_ended(struct json_scan *s)
{
    skip_space(s);
    return s->p == s->end;
}

/* The four digits behind \u; -1: others. */
static int32_t four_digits(struct json_scan *s)
{
    static const char digits[] = "0123456789abcdef";
    int32_t v = 0;

    if (s->end - s->p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = *s->p;
        const char *d = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
        if (!d)
            return -1;
        v = v << 4 | (int32_t)(d - digits);
        s->p++;
    }
    return v;
}

/* The character behind \u, of two of them for one beyond U+FFFF; 0: it cannot be. */
static uint32_t unescape_code(struct json_scan *s)
{
    int32_t high = four_digits(s);

    if (high <= 0 || (high >= 0xdc00 && high <= 0xdfff))
        return 0;
    if (high < 0xd800 || high > 0xdbff)
        return (uint32_t)high;
    if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
        return 0;
    s->p += 2;
    int32_t low = four_digits(s);
    return low >= 0xdc00 && low <= 0xdfff
               ? 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00)
               : 0;
}

/* It as UTF-8; how many bytes, or 0. */
static size_t unescape_u(struct json_scan *s, char out[static 4])
{
    uint32_t v = unescape_code(s);
    size_t n = v < 0x800 ? 2 : v < 0x10000 ? 3 : 4;

    if (v < 0x80) {
        out[0] = (char)v;
        return v > 0;
    }
    out[0] = (char)((0xf00 >> n & 0xff) | v >> (6 * (n - 1)));
    for (size_t i = 1; i < n; i++)
        out[i] = (char)(0x80 | (v >> (6 * (n - 1 - i)) & 0x3f));
    return n;
}

/* What stands behind a backslash; how many bytes, or 0. */
static size_t unescape(struct json_scan *s, char out[static 4])
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";

    if (s->p == s->end)
        return 0;
    char c = *s->p++;
    if (c == 'u')
        return unescape_u(s, out);
    const char *at = c ? strchr(from, c) : NULL;
    if (!at)
        return 0;
    out[0] = to[at - from];
    return 1;
}

int json_scan_string(struct json_scan *s, char *out, size_t size)
{
    size_t len = 0;

    if (!json_scan_take(s, '"'))
        return -1;
    while (s->p < s->end) {
        char piece[4] = {*s->p++};
        size_t n = 1;
        if (piece[0] == '"') {
            out[len] = '\0';
            return 0;
        }
        if (piece[0] == '\\')
            n = unescape(s, piece);
        else if ((unsigned char)piece[0] < 0x20)
            return -1;
        if (!n || n >= size - len)
            return -1;
        memcpy(out + len, piece, n);
        len += n;
    }
    return -1;
}

int json_scan_integer(struct json_scan *s, int64_t *ret)
{
    int64_t v = 0;

    skip_space(s);
    const char *first = s->p;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        v = v * 10 + (*s->p - '0');
        if (v > INT64_C(1) << 53)
            return -1;
    }
    if (s->p == first || (*first == '0' && s->p - first > 1))
        return -1;
    if (s->p < s->end && (*s->p == '.' || *s->p == 'e' || *s->p == 'E'))
        return -1;
    *ret = v;
    return 0;
}

static int skip_string(struct json_scan *s)
{
    if (!json_scan_take(s, '"'))
        return -1;
    while (s->p < s->end) {
        char c = *s->p++;
        if (c == '"')
            return 0;
        if (c == '\\' && s->p < s->end)
            s->p++;
    }
    return -1;
}

static int skip_value(struct json_scan *s, int depth)
{
    bool object = json_scan_take(s, '{');
    bool array = !object && json_scan_take(s, '[');

    if (depth > JSON_SCAN_DEPTH)
        return -1;
    if (object || array) {
        char close = object ? '}' : ']';
        if (json_scan_take(s, close))
            return 0;
        do {
            if ((object && (skip_string(s) || !json_scan_take(s, ':'))) || skip_value(s, depth + 1))
                return -1;
        } while (json_scan_take(s, ','));
        return json_scan_take(s, close) ? 0 : -1;
    }
    if (s->p < s->end && *s->p == '"')
        return skip_string(s);
    /* A number or a word. */
    const char *first = s->p;
    while (s->p < s->end && *s->p && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *s->p))
        s->p++;
    return s->p > first ? 0 : -1;
}

int json_scan_skip(struct json_scan *s)
{
    return skip_value(s, 0);
}

int json_put_string(struct buf *out, const char *text, struct err *err)
{
    if (buf_puts(out, "\"", err))
        return -1;
    for (const char *p = text; *p; p++) {
        int rc;
        if (*p == '"' || *p == '\\')
            rc = buf_printf(out, err, "\\%c", *p);
        else if ((unsigned char)*p < 0x20)
            rc = buf_printf(out, err, "\\u%04x", (unsigned)*p);
        else
            rc = buf_append(out, p, 1, err);
        if (rc)
            return -1;
    }
    return buf_puts(out, "\"", err);
}
