/* view.h - one line of `kubectl ptj logs`: "[node-0] text". Pure.
 *
 * Errors:    a line that is longer than the buffer's limit makes it `full` (buf.h).
 */
#ifndef TK_CLI_LOGS_VIEW_H
#define TK_CLI_LOGS_VIEW_H

#include "cli/logs/merge.h"
#include "common/buf.h"

#include <regex.h>

struct view {
    bool colours, safe; /* safe: for a terminal, see shown.h; else the bytes as they are */
    bool times;
    const regex_t *grep; /* of the lines that are wanted; NULL: all are */
};

/* Whether some of the line fits the pattern. NULL: each line does. */
bool view_wants(const regex_t *grep, struct sv line);

/* `label` names the pod; its colour is that of the line's stream. The line ends with a line feed. */
void view_line(struct buf *out, const struct view *v, const char *label, const struct merge_line *line);

#endif
