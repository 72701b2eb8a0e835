/* report.h - the launcher's failure report in the file from which Kubernetes takes a container's termination
 * message.
 *
 * One line of JSON, at most 1 KiB:
 *     {"rank":3,"exitCode":137,"signal":9,"host":"j-node-3","message":"..."}
 * "signal" is there only if the rank died by one, and "noProgress":true, at the end, only of a rank that held up a run that hung.
 * The operator ignores a truncated report (operator/plan/rootcause.h). Of a long message the end is kept, because it
 * says most. Escape sequences are removed, bytes that are no UTF-8 replaced.
 */
#ifndef TK_LAUNCHER_REPORT_H
#define TK_LAUNCHER_REPORT_H

#include "launcher/exit.h"

enum { REPORT_BYTES = 1024 };

/* Format the report of rank *w. `tail` is the end of the rank's stderr, from which "message" is taken. If the
 * rank also left a message in its error file (w->message), "message" ends with the line of the tail that contains
 * it, or is that message itself if no line does. */
void report_encode(const struct exit_worker *w, const char *host, const char *tail, struct buf *out);

/* Write the report, or what else is to be the termination message, to `path`, unless the file has content already. Other programs of the container may have
 * replaced the file, so symbolic links are not followed (ERR_FATAL, code = errno) and only a regular file is
 * written (ERR_INVALID). */
int report_write(const char *path, const struct buf *text, struct err *err) MUST_CHECK;

#endif
