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

int shown_line(struct buf *out, struct sv text, struct err *err)
{
    struct sv t = last_part(text);

    while (t.len) {
        uint32_t c = 0;
        size_t n = t.p[0] == ESC ? text_escape_length(t.p, t.len) : text_character(t.p, t.len, &c);
        int failed = 0;
        if (t.p[0] == '\t')
            failed = buf_append(out, " ", 1, err);
        else if (n && is_drawn(c))
            failed = buf_append(out, t.p, n, err);
        else if (t.p[0] != ESC)
            failed = buf_append(out, "?", 1, err);
        if (failed)
            return -1;
        n = n ? n : 1;
        t = sv_skip(t, n);
    }
    return 0;
}

void shown_text(char *to, size_t size, const char *text)
{
    cleanup_buf struct buf line = BUF_INIT(TEXT_BYTES);
    struct err full;
    const size_t len = text ? text_head(text, TEXT_BYTES / 2) : 0;

    for (size_t at = 0, n; at < len; at += n + 1) {
        n = strcspn(text + at, "\n");
        n = n < len - at ? n : len - at;
        if ((at && buf_append(&line, " ", 1, &full) < 0) ||
            shown_line(&line, (struct sv){text + at, n}, &full) < 0)
            break;
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
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (c >= wide[i].first && c <= wide[i].last)
            return 2;
    return 1;
}

size_t shown_fit(struct sv text, size_t columns)
{
    size_t at = 0;

    while (at < text.len) {
        uint32_t c = 0;
        size_t n = text_character(text.p + at, text.len - at, &c);
        size_t width = n ? width_of(c) : 1;
        if (width > columns)
            break;
        columns -= width;
        at += n ? n : 1;
    }
    return at;
}

size_t shown_columns(struct sv text)
{
    size_t columns = 0;

    for (size_t at = 0; at < text.len;) {
        uint32_t c = 0;
        size_t n = text_character(text.p + at, text.len - at, &c);
        columns += n ? width_of(c) : 1;
        at += n ? n : 1;
    }
    return columns;
}

int shown_word(struct buf *out, const char *word, struct err *err)
{
    static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";

    if (word[0] && strspn(word, SAFE) == strlen(word))
        return buf_puts(out, word, err);
    if (buf_puts(out, "'", err) < 0)
        return -1;
    for (const char *p = word; *p; p++)
        if (*p == '\'' ? buf_puts(out, "'\\''", err) < 0 : buf_append(out, p, 1, err) < 0)
            return -1;
    return buf_puts(out, "'", err);
}
