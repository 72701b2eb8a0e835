/* words.c - match the alternatives of GPT-2's pre-tokenizer pattern in their order, without backtracking. */
#include "tools/text/words.h"

#include "tools/text/unicode.h"

#include <string.h>

enum { UNDECIDED = 0, NONE = 1 };

/* The characters of one kind from `at` on: where they end. UNDECIDED: perhaps behind the text's end. */
static size_t run_end(const uint8_t *p, size_t at, size_t len, bool more, enum unicode_kind kind,
                      size_t *ret_last)
{
    while (at < len) {
        enum unicode_kind k;
        size_t n = unicode_next(p + at, len - at, &k);
        if (!n && more)
            return UNDECIDED;
        if (!n) {
            n = 1; /* cut off: a byte that is no character */
            k = UNICODE_OTHER;
        }
        if (k != kind)
            return at;
        *ret_last = at;
        at += n;
    }
    return more ? UNDECIDED : at;
}

/* 's 't 'm 'd 're 've 'll at an apostrophe; NONE: another. */
static size_t contraction(const uint8_t *p, size_t len, bool more)
{
    static const char *const two[] = {"re", "ve", "ll"};

    if (len >= 2 && strchr("stmd", p[1]) && p[1])
        return 2;
    for (size_t i = 0; i < sizeof(two) / sizeof(two[0]); i++) {
        if (len >= 3 && memcmp(p + 1, two[i], 2) == 0)
            return 3;
        if (len < 3 && more && (len == 1 || p[1] == (uint8_t)two[i][0]))
            return UNDECIDED;
    }
    return NONE;
}

/* \s+(?!\S)|\s+: all of them at the end of the text, else all but the one before the next word, which belongs to it. */
static size_t spaces(const uint8_t *p, size_t len, bool more)
{
    size_t last = 0;
    size_t end = run_end(p, 0, len, more, UNICODE_SPACE, &last);

    if (end == UNDECIDED || end == len)
        return end;
    return last ? last : end;
}

size_t words_next(const uint8_t *p, size_t len, bool more)
{
    enum unicode_kind kind;
    size_t first = 0;
    size_t ignored;

    if (!len)
        return UNDECIDED;
    if (p[0] == '\'') {
        size_t n = contraction(p, len, more);
        if (n != NONE)
            return n;
    }
    if (p[0] == ' ') {
        if (len == 1)
            return more ? UNDECIDED : 1;
        first = 1;
    }
    if (!unicode_next(p + first, len - first, &kind)) {
        if (more)
            return UNDECIDED;
        kind = UNICODE_OTHER;
    }
    return kind == UNICODE_SPACE ? spaces(p, len, more) : run_end(p, first, len, more, kind, &ignored);
}
