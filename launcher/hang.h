/* hang.h - what the launcher keeps to see that a round hangs and to find the rank that holds it up; agent_hang.c works on it.
 *
 * Order: a round is watched (HANG_WATCHES) until no rank of any node has shown a sign of life for the limit. Then the ranks'
 *        processes are looked at twice, HANG_LOOK_MS apart (HANG_LOOKS); Python ranks are aborted, and their stacks come
 *        through their stderr (HANG_ABORTS); and the launcher reports the suspect (HANG_TOLD).
 */
#ifndef TK_LAUNCHER_HANG_H
#define TK_LAUNCHER_HANG_H

#include "host/rank_state.h"
#include "launcher/quiet.h"
#include "launcher/suspect.h"

#include <sys/types.h>

/* HANG_STACK_MS: how long processes may write their stacks; a rank without one counts as uninterruptible, so a busy machine gets time. HANG_SETTLE_MS: after the last of them has ended its output is
 * complete when no more came for so long. HANG_STACK_BYTES: how much of it is kept of each rank. HANG_POLL_MS: how often it is looked whether one has ended. */
enum {
    HANG_LOOK_MS = 400,
    HANG_STACK_MS = 5000,
    HANG_SETTLE_MS = 100,
    HANG_POLL_MS = 20,
    HANG_STACK_BYTES = 256 * 1024,
    HANG_PYTHONS_MAX = 16, /* of one rank */
    HANG_MESSAGE_BYTES = SUSPECT_BYTES + 64
};

enum hang_stage { HANG_WATCHES, HANG_LOOKS, HANG_ABORTS, HANG_TOLD };

/* A rank of this node. */
struct hang_rank {
    struct rank_slot seen; /* its slot at the last look */
    uint64_t ticks;        /* its CPU time at the first look */
    /* Its Python processes, aborted one after the other so that their stacks do not mix: pids[at] is the one at present. */
    pid_t pids[HANG_PYTHONS_MAX];
    int n, at;
    bool at_aborted; /* pids[at] has been */
};

struct hang {
    int64_t limit_ms; /* 0: rounds are not watched, and nothing below counts */
    struct quiet quiet;
    bool said;     /* the other nodes have been told that this one is quiet */
    int64_t ended; /* at the last look: exited ranks here, plus nodes that the leader reports as done */
    enum hang_stage stage;
    int64_t since_ms; /* the first look */
    bool aborting;    /* an aborted process was there at the last look */
    int64_t ended_ms; /* when the last of them was first seen gone; 0: there was none */
    int64_t due_ms;   /* the end of the stage */
    struct hang_rank *ranks;
    struct suspect_rank *found; /* [nproc] what is known of each */
    int blamed;                 /* with HANG_TOLD: the local rank */
    char message[HANG_MESSAGE_BYTES];
};

#endif
