/* screen.h - `kubectl ptj why` as text that fits a screen: what, where, the last lines, what the operator does, what to do. Pure.
 *
 * Errors:    a text that is longer than the buffer's limit makes it `full` (buf.h).
 */
#ifndef TK_CLI_WHY_SCREEN_H
#define TK_CLI_WHY_SCREEN_H

#include "cli/why/finding.h"
#include "common/buf.h"

enum { SCREEN_COLUMNS_MIN = 40, SCREEN_ROWS_MIN = 16 }; /* a smaller screen is cut by its terminal */

struct screen_size {
    int columns; /* 0: lines are not wrapped */
    int rows;    /* with one for the prompt; 0: as many as there are */
    bool events; /* and at the end the messages of the events */
};

void screen_print(const struct why_facts *f, struct screen_size size, struct buf *out);

#endif
