/* agent.h - the launcher's main function: start the ranks of this node, watch them, stop them together, restart
 * them. One thread, one blocking call.
 *
 * Order:  a round (round.h) runs until a rank fails or a signal arrives. After a failure that another rank
 *         may have caused (exit.h), the launcher waits up to AGENT_ROOT_CAUSE_MS for a better root cause.
 *         Then it stops the ranks: it sends them SIGTERM, or the signal that it received itself, and SIGKILL
 *         after the shutdown timeout. A stopped rank is running until its children have exited too, so that a
 *         trainer whose parent shell dies of the signal can still write its checkpoint. Then the next round
 *         begins, or the run ends.
 */
#ifndef TK_LAUNCHER_AGENT_H
#define TK_LAUNCHER_AGENT_H

#include "launcher/options.h"

enum {
    AGENT_ROOT_CAUSE_MS = 1000, /* at most half the shutdown timeout */
    AGENT_KILL_GRACE_MS = 5000, /* from SIGKILL until the launcher no longer waits for a rank */
    AGENT_FLUSH_MS = 3000,      /* longest wait for the console */
    AGENT_LOOK_MS = 1000        /* how often the launcher reads the ranks' slots and the progress file */
};

/* Run to the end; returns the process's exit status: 0; the root cause's status; 128 + signal after a signal,
 * unless this node's rank failed and cannot be restarted: then that rank's status; or exit_error_code when the
 * launcher itself fails (no rank is left then). With several nodes also 140 (another node caused the end) and
 * 138 (too few nodes joined, or the run was full). The caller must block o->signals and
 * SIGCHLD. Messages go to stderr, and each waits a bounded time for the console. */
int agent_run(const struct options *o, char *const *env);

#endif
