/* evidence.h - what /proc says of a rank's processes.
 *
 * A rank is a session, whose leader the launcher started. Its process is the leader; where that is no Python and only started
 * another (a shell), that one. Its main thread's state counts.
 *
 * Errors: none: a process that has ended, or may not be read, is not found. Only files are read that do not wait for a
 *         process's memory lock, which one in uninterruptible sleep may hold.
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

/* All processes, as /proc lists them: in the order of their numbers. */
struct evidence {
    struct evidence_process *processes; /* in the arena */
    int n;
};

/* `proc` is "/proc", or a test's folder. */
struct evidence evidence_scan(const char *proc, struct arena *a);

/* Read one process again. False: it is gone (or a zombie). */
bool evidence_read(const char *proc, pid_t pid, struct evidence_process *ret);

/* The process of the rank with this leader; 0: none is left. */
pid_t evidence_main(const struct evidence *e, const char *proc, pid_t leader);

/* The Python processes of the session besides `main`; at most max. */
int evidence_pythons(const struct evidence *e, const char *proc, pid_t session, pid_t main, pid_t *pids,
                     int max);

bool evidence_is_python(const char *proc, pid_t pid);

/* The name of the kernel function in which it sleeps; "" when not known. */
void evidence_wchan(const char *proc, pid_t pid, char out[static SUSPECT_WCHAN_BYTES]);

#endif
