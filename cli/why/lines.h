/* lines.h - lines of a screen of so many columns, of text that others wrote: safe for a terminal (shown.h). For `kubectl ptj why`.
 * Pure.
 *
 * Ownership: lines live in the arena.
 * Errors:    those of buf.h, of lines_print; what comes after LINES_MAX lines is left out.
 */
#ifndef TK_CLI_WHY_LINES_H
#define TK_CLI_WHY_LINES_H

#include "common/arena.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/sv.h"

enum { LINES_MAX = 400 };

struct lines {
    struct arena *a;
    int columns; /* 0: any number */
    const char *at[LINES_MAX];
    int n;
};

/* A line as it is: the caller's own words. */
void lines_add(struct lines *l, const char *line);

/* Text behind `before`, further lines below its end; `rows` at most, of which the last ends with "...". 0: all. */
void lines_wrapped(struct lines *l, const char *before, const char *text, int rows);

/* A line of a log is cut, not wrapped: its beginning says most. */
void lines_cut(struct lines *l, const char *before, struct sv text);

int lines_print(const struct lines *l, struct buf *out, struct err *err) MUST_CHECK;

#endif
