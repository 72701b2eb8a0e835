/* process.h - start a rank, signal it with all its children, sweep what it leaves.
 *
 * Ownership: a started process belongs to the caller, who reaps it.
 * Errors:    ERR_INVALID when the program itself is at fault (not found, not executable), ERR_FATAL when the system
 *            has no more processes.
 */
#ifndef TK_LAUNCHER_PROCESS_H
#define TK_LAUNCHER_PROCESS_H

#include "common/cleanup.h"
#include "common/err.h"

#include <sys/types.h>

struct process_spec {
    char *const *words;
    char *const *env;
    int out; /* becomes its stdout; -1: ours */
    int err; /* becomes its stderr; -1: ours */
};

/* In a session of its own, killed when we die, with default signal actions and an empty mask. -1 on failure. */
pid_t process_start(const struct process_spec *spec, struct err *err);

/* The rank's whole process group. A stopped one is woken so that it can obey. */
void process_signal_group(pid_t leader, int signal);

/* Become the parent of orphans below us. */
void process_adopt_orphans(void);

/* Kill all children we have (the orphans of ranks that have ended) and reap them. Bounded. */
void process_sweep(void);

#endif
