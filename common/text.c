/* text.c - shorten text, repair its UTF-8, append to it. */
#include "common/text.h"
#include "common/cleanup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int text_mark(const void *bytes, size_t len, struct err *err)
{
    if (len >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return err_set(
            err, ERR_INVALID,
            "UTF-16 by its first two bytes, expected UTF-8 (iconv -f UTF-16 -t UTF-8 converts it)");
    return len >= 3 && memcmp(bytes, TEXT_MARK, 3) == 0 ? 3 : 0;
}

struct sv text_tail(const char *s, size_t max)
{
    size_t len = strlen(s);
    size_t from = len > max ? len - max : 0;

    while (from > 0 && ((unsigned char)s[from] & 0xc0) == 0x80)
        from++;
    return (struct sv){s + from, len - from};
}

size_t text_head(const char *s, size_t max)
{
    size_t len = strnlen(s, max + 1);

    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)s[max] & 0xc0) == 0x80)
        max--;
    return max;
}

size_t text_end(const char *s, size_t len, size_t room, size_t (*cost)(char c))
{
    size_t from = len, used = 0;

    while (from && used + cost(s[from - 1]) <= room)
        used += cost(s[--from]);
    while (from < len && ((unsigned char)s[from] & 0xc0) == 0x80)
        from++;
    return from;
}

void text_ellipsis(char *out, size_t size, size_t full)
{
    static const char MORE[] = "…";

    if (full < size)
        return;
    size_t end = text_head(out, size - sizeof(MORE));
    for (size_t at = end; at > end / 2; at--)
        if (out[at] == ' ') {
            end = at;
            break;
        }
    memcpy(out + end, MORE, sizeof(MORE));
}

/* Refuses surrogates, code points above U+10FFFF and overlong forms. */
size_t text_character(const char *s, size_t len, uint32_t *ret)
{
    const unsigned char first = (unsigned char)s[0];
    const size_t n = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : 4;
    uint32_t c = n == 1 ? first : first & (0xffU >> (n + 1));

    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    }
    if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) || (c >= 0xd800 && c < 0xe000))
        return 0;
    *ret = c;
    return n;
}

bool text_is_hidden(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } HIDDEN[] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200f},  {0x2028, 0x202e},
                  {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

    for (size_t i = 0; i < ARRAY_LEN(HIDDEN); i++)
        if (c >= HIDDEN[i].first && c <= HIDDEN[i].last)
            return true;
    return false;
}

bool text_is_utf8(struct sv text)
{
    uint32_t c;
    size_t n = 1;

    for (; n && text.len; text = sv_skip(text, n))
        n = text_character(text.p, text.len, &c);
    return n;
}

void text_repair(char *s)
{
    uint32_t c;

    for (size_t len; *s; s += len ? len : 1) {
        len = text_character(s, 4, &c);
        if (!len)
            *s = '?';
    }
}

void text_plain(char *s)
{
    char *out = s, *const begin = s, *const end = s + strlen(s);

    while (s < end)
        if (*s == '\x1b')
            s += text_escape_length(s, (size_t)(end - s));
        else
            *out++ = *s++;
    *out = '\0';
    text_repair(begin);
}

bool text_is_lost_peer(struct sv text)
{
    static const char *const WORDS[] = {
        "gloo/transport",
        "Gloo connectFullMesh failed",
        "ncclRemoteError",
        "Connection closed by remote peer",
        "Connection was likely closed. Did the remote server shutdown or crash?",
    };

    /* gloo's own checks, as of collectives that do not match: a fault of the program. */
    if (sv_contains(text, "[enforce fail at "))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (sv_contains(text, WORDS[i]))
            return true;
    return false;
}

void text_add(char *out, size_t size, const char *fmt, ...)
{
    const size_t len = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + len, size - len, fmt, args);
    va_end(args);
}
