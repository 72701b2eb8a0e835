/* lines.c - wrap and cut what others wrote to the columns of a terminal. */
#include "cli/why/lines.h"

#include "cli/shown.h"

#include <string.h>

enum { TEXT_BYTES = 4 << 10 }; /* of one line before it is wrapped */

void lines_add(struct lines *l, const char *line)
{
    if (l->n < LINES_MAX)
        l->at[l->n++] = line;
}

/* The text, safe for a terminal. */
static const char *safe(struct arena *a, struct sv text)
{
    char *shown = arena_alloc(a, TEXT_BYTES);

    shown_text(shown, TEXT_BYTES, arena_strndup(a, text.p, text.len));
    return shown;
}

/* How much of the text goes into one line: to the last space that fits, if there is any. */
static size_t line_length(struct sv text, size_t columns)
{
    const size_t fit = shown_fit(text, columns);
    size_t at = fit;

    if (fit == text.len || text.p[fit] == ' ')
        return fit;
    while (at > 0 && text.p[at - 1] != ' ')
        at--;
    return at ? at : fit ? fit : 1;
}

void lines_wrapped(struct lines *l, const char *before, const char *text, int rows)
{
    struct sv rest = sv_from(safe(l->a, sv_from(text)));
    const size_t indent = strlen(before);
    const size_t columns = l->columns ? (size_t)l->columns - indent : TEXT_BYTES;

    for (int row = 1; rest.len || row == 1; row++) {
        const bool cut = row == rows && shown_columns(rest) > columns;
        size_t len = cut ? shown_fit(rest, columns - 3) : line_length(rest, columns);
        size_t end = len;
        while (end > 0 && rest.p[end - 1] == ' ')
            end--;
        lines_add(l, arena_printf(l->a, "%*s%.*s%s", (int)indent, row == 1 ? before : "", (int)end, rest.p,
                                  cut ? "..." : ""));
        if (cut)
            return;
        while (len < rest.len && rest.p[len] == ' ')
            len++;
        rest = sv_skip(rest, len);
    }
}

void lines_cut(struct lines *l, const char *before, struct sv text)
{
    const char *shown = safe(l->a, text);
    const size_t columns = l->columns ? (size_t)l->columns - strlen(before) : TEXT_BYTES;

    lines_add(l, arena_printf(l->a, "%s%.*s", before, (int)shown_fit(sv_from(shown), columns), shown));
}

int lines_print(const struct lines *l, struct buf *out, struct err *err)
{
    for (int i = 0; i < l->n; i++)
        if (buf_puts(out, l->at[i], err) < 0 || buf_puts(out, "\n", err) < 0)
            return -1;
    return 0;
}
