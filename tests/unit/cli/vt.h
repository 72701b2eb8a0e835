/* vt.h - what a terminal shows after the bytes that were written to it: as much of one as kubectl-ptj uses. For tests.
 *
 * Cursor addressing, erasing, wrapping, the alternate screen, the cursor's visibility and synchronized updates; colours are
 * skipped. A sequence that it does not know is kept in `unknown`. Every character takes one column.
 */
#ifndef TK_TESTS_CLI_VT_H
#define TK_TESTS_CLI_VT_H

#include <stdbool.h>
#include <stddef.h>

enum { VT_ROWS = 60, VT_COLUMNS = 250, VT_CELL = 5 };

struct vt_page {
    char cells[VT_ROWS][VT_COLUMNS][VT_CELL]; /* "": blank */
    int row, column;
};

struct vt {
    int rows, columns;
    struct vt_page pages[2]; /* the alternate one is the second */
    int page;
    bool cursor, wraps, in_update;
    long updates; /* synchronized ones that are complete */
    long cleared; /* times the whole page was erased at once */
    char unknown[32];
    char pending[32]; /* a sequence or character of which more is to come */
    size_t n_pending;
    bool at_margin; /* the last column is written; the next character wraps */
};

void vt_init(struct vt *v, int columns, int rows);
void vt_resize(struct vt *v, int columns, int rows);
void vt_feed(struct vt *v, const char *bytes, size_t len);

/* The present page as text: lines without blanks at their ends, no blank lines at the end. Free with free(). */
char *vt_text(const struct vt *v);

#endif
