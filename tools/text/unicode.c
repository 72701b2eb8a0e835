/* unicode.c - decode UTF-8, and look up a character's category by binary search in sorted ranges. */
#include "tools/text/unicode.h"

#include <stdbool.h>

/* White_Space of Unicode's PropList.txt. */
static bool is_space(uint32_t c)
{
    return (c >= 0x9 && c <= 0xd) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

static bool is_in(const struct unicode_range *range, size_t n, uint32_t c)
{
    size_t low = 0;

    while (n > 1) {
        size_t half = n / 2;
        if (range[low + half].first <= c)
            low += half;
        n -= half;
    }
    return c >= range[low].first && c <= range[low].last;
}

enum unicode_kind unicode_kind(uint32_t c)
{
    if (is_space(c))
        return UNICODE_SPACE;
    if (is_in(UNICODE_LETTERS, UNICODE_LETTERS_LEN, c))
        return UNICODE_LETTER;
    return is_in(UNICODE_NUMBERS, UNICODE_NUMBERS_LEN, c) ? UNICODE_NUMBER : UNICODE_OTHER;
}

static enum unicode_kind ascii_kind(uint8_t c)
{
    if ((c | 32) >= 'a' && (c | 32) <= 'z')
        return UNICODE_LETTER;
    if (c >= '0' && c <= '9')
        return UNICODE_NUMBER;
    return is_space(c) ? UNICODE_SPACE : UNICODE_OTHER;
}

/* How many bytes a character has that begins so, and the range of its second (Unicode, table 3-7); 0: none does. */
static size_t lead(uint8_t c, uint8_t *low, uint8_t *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef) {
        *low = c == 0xe0 ? 0xa0 : 0x80;
        *high = c == 0xed ? 0x9f : 0xbf; /* no surrogates */
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        *low = c == 0xf0 ? 0x90 : 0x80;
        *high = c == 0xf4 ? 0x8f : 0xbf; /* up to U+10FFFF */
        return 4;
    }
    return 0;
}

size_t unicode_next(const uint8_t *p, size_t len, enum unicode_kind *ret)
{
    uint8_t low, high;

    if (p[0] < 0x80) {
        *ret = ascii_kind(p[0]);
        return 1;
    }
    size_t n = lead(p[0], &low, &high);
    uint32_t c = n ? p[0] & (0x7fU >> n) : 0;
    *ret = UNICODE_OTHER;
    for (size_t i = 1; i < n; i++) {
        if (i == len)
            return 0;
        if (p[i] < low || p[i] > high)
            return 1;
        c = c << 6 | (p[i] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    if (!n)
        return 1;
    *ret = unicode_kind(c);
    return n;
}
