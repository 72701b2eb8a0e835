/* jsontok.c - split a JSON text into brackets, strings and words. */
#include "common/jsontok.h"

#include <string.h>

static bool is_plain(char c)
{
    return c != '"' && c != '\\' && c != '\0';
}

static bool is_word(char c)
{
    switch (c) {
    case '{':
    case '}':
    case '[':
    case ']':
    case ':':
    case ',':
    case '"':
        return false;
    default:
        return (unsigned char)c > ' ';
    }
}

static void keep_text(struct jsontok *t, const char *p, size_t n)
{
    const size_t room = sizeof(t->text) - 1 - t->len;

    if (t->odd || t->depth > t->keep_depth)
        return;
    t->odd = n > room;
    memcpy(t->text + t->len, p, t->odd ? room : n);
    t->len += t->odd ? room : n;
    t->text[t->len] = '\0';
}

/* Handle one byte after a backslash. False: it does not belong to the escape. */
static bool escaped(struct jsontok *t, const char *p)
{
    const bool first = t->escape == 1;
    const bool of_nul = *p == (first ? 'u' : '0');

    if (of_nul && t->escape == 5)
        t->nul = p;
    t->escape = of_nul && t->escape < 5 ? t->escape + 1 : 0;
    return first || of_nul;
}

/* Skip from after the opening quote to after the closing one. False: the piece ends before. */
static bool string(struct jsontok *t, struct sv *bytes)
{
    const char *const end = bytes->p + bytes->len;
    const char *p = bytes->p;
    bool closed = false;

    while (p < end && !closed) {
        const char *const plain = p;
        if (t->escape && escaped(t, p)) {
            p++;
            continue;
        }
        while (p < end && is_plain(*p))
            p++;
        keep_text(t, plain, (size_t)(p - plain));
        if (p == end)
            break;
        closed = *p == '"';
        t->odd |= !closed && t->depth <= t->keep_depth;
        t->escape = *p == '\\';
        if (*p == '\0')
            t->nul = p;
        p++;
    }
    *bytes = (struct sv){p, (size_t)(end - p)};
    t->inside = closed ? '\0' : '"';
    return closed;
}

static void word(struct jsontok *t, struct sv *bytes)
{
    while (bytes->len && is_word(*bytes->p))
        *bytes = sv_skip(*bytes, 1);
    t->inside = bytes->len ? '\0' : 'w';
}

char jsontok_next(struct jsontok *t, struct sv *bytes)
{
    t->begin = bytes->p;
    if (t->inside == '"' && bytes->len)
        return string(t, bytes) ? '"' : '\0';
    if (t->inside == 'w')
        word(t, bytes);
    while (bytes->len && (unsigned char)*bytes->p <= ' ')
        *bytes = sv_skip(*bytes, 1);
    t->begin = bytes->p;
    if (!bytes->len)
        return '\0';
    const char c = *bytes->p;
    *bytes = sv_skip(*bytes, 1);
    if (c == '{' || c == '[') {
        t->depth++;
    } else if ((c == '}' || c == ']') && t->depth) {
        t->depth--;
    } else if (c == '"') {
        if (t->depth <= t->keep_depth) {
            t->len = 0;
            t->odd = false;
            t->text[0] = '\0';
        }
        return string(t, bytes) ? c : '\0';
    } else if (is_word(c)) {
        word(t, bytes);
    }
    return c;
}
