/* termination.h - write the launcher's failure report to the file that Kubernetes reads as a container's
 * termination message. agent_report.c calls it.
 *
 * One line of JSON, at most 1 KiB:
 *     {"rank":3,"exitCode":137,"signal":9,"host":"j-node-3","message":"..."}
 * "signal" is present only if a signal killed the rank, and "noProgress":true, at the end, only for the
 * suspect of a hang. The operator ignores a truncated report (operator/plan/rootcause.h). A long message
 * keeps its end, which is the most useful part. The launcher removes escape sequences and replaces bytes that
 * are not UTF-8.
 */
#ifndef TK_LAUNCHER_TERMINATION_H
#define TK_LAUNCHER_TERMINATION_H

#include "launcher/exit.h"

enum { TERMINATION_BYTES = 1024 };

/* Format the report of rank *w. "message" is `tail`, the end of the rank's stderr. If the rank also left a
 * message in its error file (w->message), "message" ends with the line of the tail that contains it; if no
 * line does, it is that message itself. */
void termination_encode(const struct exit_worker *w, const char *host, const char *tail, struct buf *out);

/* Write a termination message to `path`, unless the file has content already. Other programs of the container
 * may have replaced the file, so it does not follow symbolic links (ERR_FATAL, code = errno) and writes only
 * to a regular file (else ERR_INVALID). */
int termination_write(const char *path, const struct buf *text, struct err *err) MUST_CHECK;

#endif
