/* process.h - start a rank, signal it with its children, kill the processes that it leaves behind. agent.c
 * and round.c call it.
 *
 * Ownership: the caller reaps a started process.
 * Errors:    ERR_INVALID when the program cannot be executed (not found, not executable), ERR_FATAL when a pipe
 *            or process cannot be created.
 */
#ifndef TK_LAUNCHER_PROCESS_H
#define TK_LAUNCHER_PROCESS_H

#include "common/cleanup.h"
#include "common/err.h"

#include <signal.h>
#include <sys/types.h>

struct process_spec {
    char *const *words; /* program and arguments, ended by NULL; searched in $PATH */
    char *const *env;   /* ended by NULL */
    int out;            /* descriptor for its stdout; -1: inherit */
    int err;            /* descriptor for its stderr; -1: inherit */
    sigset_t ignored;   /* signals to ignore; never SIGTERM, which stops ranks */
};

/* Start a process in its own session, with default actions for all other signals and no blocked signals. The
 * kernel kills it when this process exits. Returns when exec has succeeded; -1 on failure. */
pid_t process_start(const struct process_spec *spec, struct err *err);

/* Send a signal to the rank's process group, and SIGCONT, so that stopped processes receive it. */
void process_signal_group(pid_t leader, int signal);

/* Abort a process, even a stopped one, so that its SIGABRT handler writes its stacks. It leaves no core
 * file. */
void process_abort(pid_t pid);

/* Make this process the parent of its descendants' orphans (PR_SET_CHILD_SUBREAPER), and start the guard: a child
 * that waits for the end of this process, and then kills all processes with variable=value in their environment,
 * that is, all that the ranks have started, in any session. Process 1, whose end also ends its PID namespace, has
 * no guard, and there is none if `value` is "". process_sweep ends the guard. */
void process_guard(const char *variable, const char *value);

/* Kill and reap all children (orphans of ranks that have exited, the guard). Takes about 1 s at most. */
void process_sweep(void);

#endif
