/* evidence.h - read the state of a rank's processes from /proc. agent_hang.c calls it when a round hangs.
 *
 * A rank is a session, whose leader the launcher started. Its main process is the leader, or the leader's
 * child if the leader is not Python (a shell). The state is that of the main thread.
 *
 * Errors: none: a process that has ended, or that may not be read, is not found. It reads only files that do
 *         not wait for the process's memory lock, which a process in uninterruptible sleep may hold.
 */
#ifndef TK_LAUNCHER_EVIDENCE_H
#define TK_LAUNCHER_EVIDENCE_H

#include "common/arena.h"
#include "launcher/suspect.h"

#include <sys/types.h>

enum { EVIDENCE_PROCESSES_MAX = 16384 };

struct evidence_process {
    pid_t pid, parent, session;
    char state;
    uint64_t ticks; /* CPU time of all threads, in clock ticks */
};

/* All processes, in ascending order of pid. */
struct evidence {
    struct evidence_process *processes; /* in the arena */
    int n;
};

/* `proc` is "/proc", or a test's folder. */
struct evidence evidence_scan(const char *proc, struct arena *a);

/* Read one process again. False: it has ended (or is a zombie). */
bool evidence_read(const char *proc, pid_t pid, struct evidence_process *ret);

/* The main process of the rank with this leader; 0: none is left. */
pid_t evidence_main(const struct evidence *e, const char *proc, pid_t leader);

/* Find the Python processes of the session other than `main`, at most max; returns how many. */
int evidence_pythons(const struct evidence *e, const char *proc, pid_t session, pid_t main, pid_t *pids,
                     int max);

bool evidence_is_python(const char *proc, pid_t pid);

/* The kernel function in which the process sleeps; "": not known. */
void evidence_wchan(const char *proc, pid_t pid, char out[static SUSPECT_WCHAN_BYTES]);

#endif
