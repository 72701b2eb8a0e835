/* agent.h - start the ranks, watch them, stop them together, start them again; one thread, one blocking call.
 *
 * Order:  a round is Running until a rank fails or a signal comes. A failure that is only "a peer was lost" waits up
 *         to AGENT_ROOT_CAUSE_MS for a better root cause. Then Stopping: the ranks get a signal, and SIGKILL when
 *         the shutdown timeout is over. A rank's children count as the rank until they are gone, so that a shell
 *         which dies of the signal does not cost its trainer the checkpoint. Ended: the next round, or the verdict.
 */
#ifndef TK_LAUNCHER_AGENT_H
#define TK_LAUNCHER_AGENT_H

#include "launcher/options.h"

enum { AGENT_ROOT_CAUSE_MS = 1000, AGENT_KILL_GRACE_MS = 5000, AGENT_FLUSH_MS = 3000 };

/* Run to the end; returns what the process exits with. Signals of o->signals and SIGCHLD must be blocked, so all that
 * is to be said is said here, on stderr and in bounded time. EXIT_CODE_ERROR when the ranks cannot be started at all;
 * none is left then. */
int agent_run(const struct options *o, char *const *env);

#endif
