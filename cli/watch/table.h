/* table.h - the table that `kubectl ptj watch` shows on a terminal, as lines of text. Pure.
 *
 * One row per job: name, phase, pods ready, progress bar, percent, time left, loss as a number and as a sparkline, restarts,
 * age. The last event is a column where 130 columns are there; else it stands below its job where the rows suffice for all
 * jobs and events. Columns that a narrow terminal has no room for are left out, those that say least first. Jobs that have no row are
 * counted in a line.
 *
 * Ownership: jobs are borrowed for the call.
 * Units:     columns and rows of the terminal; milliseconds since the Unix epoch.
 */
#ifndef TK_CLI_WATCH_TABLE_H
#define TK_CLI_WATCH_TABLE_H

#include "cli/watch/board.h"
#include "common/buf.h"

enum {
    TABLE_COLUMNS_MIN = 20, /* smaller terminals are drawn as if they had so many */
    TABLE_ROWS_MIN = 4,
    TABLE_COLUMNS_MAX = 500,
    TABLE_ROWS_MAX = 500,
    TABLE_NONE = -1,
    TABLE_BYTES_MAX = TABLE_ROWS_MAX * TABLE_COLUMNS_MAX * 8,
};

struct table {
    int columns, rows;
    bool colours;
    bool unicode;     /* bars and sparklines of block characters; else of ASCII ones */
    const char *what; /* the title: "namespace team" */
    bool with_ns;     /* names are shown as NAMESPACE/NAME */
    bool waiting;     /* nothing was answered yet */
    const char *note; /* the last line: what is wrong, or which keys there are; NULL: none */
    bool alarm;       /* the note reports a failure */
    int selected;     /* the row of this job is marked, and shown; TABLE_NONE: no row */
    int64_t now_ms;
};

/* Append at most `rows` lines, each of at most `columns` columns and with a '\n' at its end, about these n jobs (board_sorted). */
void table_draw(const struct table *s, struct board_job *const *jobs, size_t n, struct buf *out);

#endif
