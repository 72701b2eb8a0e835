/* changes.h - the lines of `kubectl ptj watch` in a pipe or file: one for each change of a job that a person would want to
 * know. Pure.
 *
 * A line is written when the phase changes, when the reason of a job that does not run does (its first word), at a restart, and
 * when the progress has gone on by 10 points or by a minute.
 */
#ifndef TK_CLI_WATCH_CHANGES_H
#define TK_CLI_WATCH_CHANGES_H

#include "cli/watch/board.h"
#include "common/buf.h"

enum { CHANGES_POINTS = 10, CHANGES_MS = 60000 };

/* Append the line about this job, '\n' included, and keep in j->printed what it had; nothing if there is nothing new.
 * with_ns: it begins with NAMESPACE/NAME. */
void changes_of(struct board_job *j, bool with_ns, int64_t now_ms, struct buf *out);

/* The line about a job that was deleted. */
void changes_deleted(const struct board_job *j, bool with_ns, int64_t now_ms, struct buf *out);

#endif
