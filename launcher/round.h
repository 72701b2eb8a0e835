/* round.h - one start of all ranks of this node, from the first process started to the last one reaped: a
 * state machine that reaps ranks and sends signals. agent*.c call it.
 *
 * Ownership: the ranks are children of this process, and the round reaps them. round_over is true when all
 *            are reaped, or when AGENT_KILL_GRACE_MS have passed since SIGKILL.
 * Units:     milliseconds of the monotonic clock; workers' wall_ms is Unix time.
 */
#ifndef TK_LAUNCHER_ROUND_H
#define TK_LAUNCHER_ROUND_H

#include "common/arena.h"
#include "launcher/exit.h"

enum round_state {
    ROUND_RUNNING,
    ROUND_WAITING, /* a failure is unsure: wait for a better root cause, and for ranks that have raised to end */
    ROUND_HUNG,    /* the round hangs: its ranks write their stacks before SIGKILL */
    ROUND_STOPPING, /* the stop signal has been sent */
    ROUND_KILLED,   /* SIGKILL has been sent */
    ROUND_OVER,
};

struct round {
    struct exit_worker *workers;
    int n; /* ranks started so far */
    int nproc;
    enum round_state state;
    bool failed;                 /* a rank that the launcher did not stop exited with a status other than 0 */
    int ended;                   /* ranks that have exited, for exit_worker.order */
    int64_t shutdown_timeout_ms; /* from the stop signal to SIGKILL */
    int64_t deadline_ms;         /* of the current state: when to call round_step at the latest; 0: none */
};

/* Allocate for nproc ranks; the state is ROUND_OVER. */
void round_init(struct round *r, int nproc, int64_t shutdown_timeout_ms, struct arena *a);
/* Begin a round; then start each rank and report it with round_started, in the order of local ranks. */
void round_begin(struct round *r);
void round_started(struct round *r, int local, int rank, pid_t pid, const char *error_file);

/* Stop the ranks with `signal`, unless they are stopping already. */
void round_stop(struct round *r, int signal);

/* Enter ROUND_HUNG: from now on no exit counts as a rank's own failure, and SIGKILL follows after timeout_ms.
 * Has an effect only while ranks run and none has failed. */
void round_hang(struct round *r, int timeout_ms);

/* After a hung round: record rank `local` as the failed one, with exit code `code`. */
void round_blame(struct round *r, int local, int code, const char *message);

/* Reap all children that have exited, ranks and orphans. */
void round_reap(struct round *r);

/* Change the state according to exits and the deadline. */
void round_step(struct round *r);

bool round_over(const struct round *r);

/* Send SIGKILL to all ranks now; no effect when the round is over. */
void round_kill(struct round *r);

#endif
