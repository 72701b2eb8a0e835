/* processes.h - run a job's pods as processes of this machine, and end as the job would end. For the verb run.
 *
 * Errors:    ERR_FATAL: a process could not be started.
 */
#ifndef TK_CLI_RUN_PROCESSES_H
#define TK_CLI_RUN_PROCESSES_H

#include "cli/run/localpod.h"

enum { PROCESSES_MAX = 16 };

/* Become the pod's program; returns only on failure, with the exit status that a shell has then: 127 not found, 126 not
 * executable. */
int processes_become(const struct localpod *pod, struct err *err);

/* Start all and wait for them. The first failure ends the others, and its status (128 + n for signal n) is returned; after the
 * success of the first pod the others have 30 s, and it is the result. SIGTERM, SIGINT, SIGHUP and SIGQUIT are passed on. -1 with *err. */
int processes_run(const struct localpod *pods, int n, struct err *err) MUST_CHECK;

#endif
