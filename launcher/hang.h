/* hang.h - the state by which agent_hang.c detects that a round hangs and finds the rank that blocks it.
 *
 * Order: HANG_WATCHING: the launcher waits until no rank of any node has made progress for the hang timeout.
 *        HANG_EXAMINING: it examines the ranks' processes twice, HANG_LOOK_MS apart. HANG_ABORTING: it aborts
 *        Python ranks and reads their stacks from their stderr. HANG_REPORTED: it has reported the suspect.
 */
#ifndef TK_LAUNCHER_HANG_H
#define TK_LAUNCHER_HANG_H

#include "host/rank_state.h"
#include "launcher/quiet.h"
#include "launcher/suspect.h"

#include <sys/types.h>

/* HANG_STACK_MS: how long processes may take to write their stacks; long enough for a busy machine, since a
 * rank without a stack counts as uninterruptible. HANG_SETTLE_MS: after the last process has ended, its
 * output is complete when none has arrived for this long. HANG_STACK_BYTES: how much output is kept per rank.
 * HANG_POLL_MS: how often to check whether a process has ended. */
enum {
    HANG_LOOK_MS = 400,
    HANG_STACK_MS = 5000,
    HANG_SETTLE_MS = 100,
    HANG_POLL_MS = 20,
    HANG_STACK_BYTES = 256 * 1024,
    HANG_PYTHONS_MAX = 16, /* of one rank */
    HANG_MESSAGE_BYTES = SUSPECT_BYTES + 64
};

enum hang_stage { HANG_WATCHING, HANG_EXAMINING, HANG_ABORTING, HANG_REPORTED };

/* A rank of this node. */
struct hang_rank {
    struct rank_slot seen; /* its slot at the last reading */
    uint64_t ticks;        /* its CPU time at the first reading */
    /* Its Python processes, which the launcher aborts one at a time so that their stacks do not mix; pids[at]
     * is next. */
    pid_t pids[HANG_PYTHONS_MAX];
    int n, at;
    bool at_aborted; /* pids[at] has been aborted */
};

struct hang {
    int64_t limit_ms; /* the hang timeout; 0: none, and no other field is used */
    struct quiet quiet;
    bool quiet_reported; /* this node has reported that it is quiet */
    int64_t ended; /* at the last reading: exited ranks here, plus nodes that the leader reports as done */
    enum hang_stage stage;
    int64_t since_ms; /* time of the first reading */
    bool aborting;    /* an aborted process was still alive at the last check */
    int64_t ended_ms; /* when the last aborted process was found to have ended; 0: none */
    int64_t due_ms;   /* when the stage ends */
    struct hang_rank *ranks;
    struct suspect_rank *found; /* [nproc] the evidence about each rank */
    int blamed;                 /* with HANG_REPORTED: the local rank */
    char message[HANG_MESSAGE_BYTES];
};

#endif
