/* logs.h - print the logs of a job as `kubectl ptj logs` does. For submit and watch.
 *
 * Errors:    those of follow.h.
 */
#ifndef TK_CLI_LOGS_LOGS_H
#define TK_CLI_LOGS_LOGS_H

#include "cli/session.h"

/* `kubectl ptj logs --tail=TAIL NAME` (-1: all lines), with its exit status. */
int logs_print(struct session *s, const char *name, int64_t tail, struct err *err) MUST_CHECK;

/* `kubectl ptj logs NAME`, with its exit status. Ctrl-C ends the process, and prints before it that the job goes on. */
int logs_follow(struct session *s, const char *name, struct err *err) MUST_CHECK;

#endif
