/* round.h - one start of all ranks, from the first process to the last one gone: a state machine over real pids.
 *
 * Ownership: the processes are its children; round_over is true when it has reaped them all, or has given up on
 *            ones that even SIGKILL does not end.
 * Units:     milliseconds of the monotonic clock; wall_ms in the workers is for the report.
 */
#ifndef TK_LAUNCHER_ROUND_H
#define TK_LAUNCHER_ROUND_H

#include "common/arena.h"
#include "launcher/exit.h"

enum round_state {
    ROUND_RUNNING,
    ROUND_WAITING,  /* for a better root cause */
    ROUND_STOPPING, /* told to stop */
    ROUND_KILLED,   /* SIGKILL sent */
    ROUND_OVER,
};

struct round {
    struct exit_worker *workers;
    bool *lingers; /* the rank has ended and children of its group have not */
    int n;         /* started so far */
    int nproc;
    enum round_state state;
    bool failed;
    int signal; /* that we were told to end by; 0: none */
    int ended;  /* ranks, for `order` */
    int64_t shutdown_timeout_ms;
    int64_t deadline_ms; /* of the state; 0: none */
};

void round_init(struct round *r, int nproc, struct arena *a);
void round_begin(struct round *r, int64_t shutdown_timeout_ms);
void round_started(struct round *r, int local, int rank, pid_t pid, const char *error_file);

/* The launcher got a signal that ends the run: pass it on. A second SIGINT or SIGQUIT kills. */
void round_signal(struct round *r, int signal);

/* The run goes on elsewhere or ends: stop the ranks, as if told to by SIGTERM. */
void round_stop(struct round *r);

/* Collect every child that has ended, ranks and orphans. */
void round_reap(struct round *r);

/* Act on what has been collected and on the deadline. */
void round_step(struct round *r);

/* How long poll may sleep: -1 for ever. */
int round_wait_ms(const struct round *r);

bool round_over(const struct round *r);

/* SIGKILL to everyone, now. */
void round_kill(struct round *r);

#endif
