/* shown.c - make text that others wrote safe to print on a terminal. */
#include "cli/shown.h"

#include "common/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ESC = 0x1b, TEXT_BYTES = 8192 };

/* What stands in the line at the end: a carriage return begins it again. */
static struct sv last_part(struct sv text)
{
    while (text.len && (text.p[text.len - 1] == '\r' || text.p[text.len - 1] == '\n'))
        text.len--;
    for (size_t i = text.len; i-- > 0;)
        if (text.p[i] == '\r')
            return (struct sv){text.p + i + 1, text.len - i - 1};
    return text;
}

/* Whether a terminal draws it, and does nothing else. */
static bool is_drawn(uint32_t c)
{
    return c >= 0x20 && (c < 0x7f || c >= 0xa0) && !text_is_hidden(c);
}

void shown_line(struct buf *out, struct sv text)
{
    struct sv t = last_part(text);

    while (t.len) {
        uint32_t c = 0;
        const size_t n = t.p[0] == ESC ? text_escape_length(t.p, t.len) : text_character(t.p, t.len, &c);
        if (t.p[0] == '\t')
            buf_append(out, " ", 1, NULL);
        else if (n && is_drawn(c))
            buf_append(out, t.p, n, NULL);
        else if (t.p[0] != ESC)
            buf_append(out, "?", 1, NULL);
        t = sv_skip(t, n ? n : 1);
    }
}

void shown_text(char *to, size_t size, const char *text)
{
    cleanup_buf struct buf line = BUF_INIT(TEXT_BYTES);
    struct sv rest = {text, text ? text_head(text, TEXT_BYTES / 2) : 0}, part;

    while (rest.len && sv_next(&rest, '\n', &part)) {
        if (part.p != text)
            buf_append(&line, " ", 1, NULL);
        shown_line(&line, part);
    }
    snprintf(to, size, "%.*s", (int)text_head(buf_str(&line), size - 1), buf_str(&line));
}

const char *shown_name(struct arena *a, const char *name)
{
    enum { ESCAPED = sizeof("\\xNN") - 1 };
    char *ret = arena_array(a, ESCAPED * strlen(name) + 1, char), *to = ret;

    while (*name) {
        uint32_t c = 0;
        size_t n = text_character(name, strlen(name), &c);
        if (n && is_drawn(c)) {
            memcpy(to, name, n);
            to += n;
        } else {
            n = 1;
            to += snprintf(to, ESCAPED + 1, "\\x%02x", (unsigned char)*name);
        }
        name += n;
    }
    *to = '\0';
    return ret;
}

/* Unicode's East Asian Width W and F in blocks, and the emoji that terminals draw in two columns. */
static size_t width_of(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},  {0x3400, 0x4dbf},
                {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},
                {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

    if ((c >= 0x300 && c < 0x370) || (c >= 0xfe00 && c < 0xfe10) || (c >= 0x20d0 && c < 0x2100))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(wide); i++)
        if (c >= wide[i].first && c <= wide[i].last)
            return 2;
    return 1;
}

/* The length of the beginning that takes `max` columns at most; *used: how many it takes. */
static size_t measure(struct sv text, size_t max, size_t *used)
{
    size_t at = 0;

    *used = 0;
    while (at < text.len) {
        uint32_t c = 0;
        const size_t n = text_character(text.p + at, text.len - at, &c);
        const size_t width = n ? width_of(c) : 1;
        if (width > max - *used)
            break;
        *used += width;
        at += n ? n : 1;
    }
    return at;
}

size_t shown_fit(struct sv text, size_t columns)
{
    size_t used;

    return measure(text, columns, &used);
}

size_t shown_columns(struct sv text)
{
    size_t used;

    measure(text, SIZE_MAX, &used);
    return used;
}

void shown_word(struct buf *out, const char *word)
{
    static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";

    if (word[0] && strspn(word, SAFE) == strlen(word)) {
        buf_puts(out, word, NULL);
        return;
    }
    buf_puts(out, "'", NULL);
    for (; *word; word++)
        buf_append(out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1, NULL);
    buf_puts(out, "'", NULL);
}
