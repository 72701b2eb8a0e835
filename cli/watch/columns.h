/* columns.h - which columns the table of `kubectl ptj watch` has on a terminal of a given width, and how wide they are. Pure. */
#ifndef TK_CLI_WATCH_COLUMNS_H
#define TK_CLI_WATCH_COLUMNS_H

#include "cli/watch/table.h"

enum column {
    COLUMN_NAME,
    COLUMN_PHASE,
    COLUMN_READY,
    COLUMN_BAR,
    COLUMN_PERCENT,
    COLUMN_LEFT,
    COLUMN_LOSS,
    COLUMN_SPARK,
    COLUMN_RESTARTS,
    COLUMN_AGE,
    COLUMN_EVENT,
    COLUMNS,
};

/* Fill width[] for these jobs; 0: the column is left out. A blank stands between two columns. */
void columns_fit(const struct table *t, struct board_job *const *jobs, size_t n, int width[static COLUMNS]);

const char *columns_title(enum column c); /* "" for one that has none */

#endif
