/* meeting.h - the two records of the rendezvous: a node (the launcher of one machine or pod) sends
 * its state, the leader sends the run's state. message.c, node.c and quorum.c use them; see PROTOCOL.md. No
 * system calls.
 *
 * A record holds the whole current state, not an event, so a reader that missed one needs only the next.
 *
 * Units:  _ms are milliseconds; wall_ms is Unix time.
 * Errors: the get functions: ERR_INVALID when the bytes are not such a record; *ret is then unspecified. */
#ifndef TK_RENDEZVOUS_MEETING_H
#define TK_RENDEZVOUS_MEETING_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "rendezvous/steps.h"

#include <stdint.h>

enum {
    MEETING_NODES_MAX = 2000,                     /* the list of members must fit into MESSAGE_STATE_BYTES */
    MEETING_TICKETS_MAX = 16 * MEETING_NODES_MAX, /* launchers over the whole run; later ones get no ticket */
    MEETING_NAME_BYTES = 256,                     /* longer than a DNS name */
    MEETING_MESSAGE_BYTES = 1001,
    MEETING_WHY_BYTES = 400,
    MEETING_MISSING_BYTES = 120,
};

/* A node's phase; these numbers are sent. */
enum node_phase {
    NODE_JOINING = 1, /* it wants to be a member of `round` */
    NODE_RUNNING,     /* its ranks of `round` run, or are stopping */
    NODE_FAILED,      /* one of its ranks failed in `round`: see cause */
    NODE_DONE,        /* all its ranks of `round` exited with status 0 */
    NODE_LEAVING,     /* it received `signal`; signal 0: it has stopped waiting for a place */
};

/* In a round that hangs: how strong the evidence against a rank is, weakest first; these numbers are sent. */
enum meeting_strength {
    STRENGTH_NONE,    /* the rank failed; it does not hang */
    STRENGTH_UNKNOWN, /* it looks like the other ranks, or it only waits for them */
    STRENGTH_ODD =
        3, /* it is in no collective call, while another rank of its node is in one or as the only rank */
    STRENGTH_STACK,   /* a Python rank that is not in a call that waits for others */
    STRENGTH_BEHIND,  /* it has not begun the collective call that others are in */
    STRENGTH_DISK,    /* uninterruptible sleep */
    STRENGTH_STOPPED, /* stopped by a signal or a debugger */
    STRENGTHS
};

/* The bytes of the structs below are sent. Another member, order or meaning needs another MESSAGE_VERSION. */

/* A failed rank; rank -1: the launcher itself failed. */
struct meeting_cause {
    int64_t rank, local_rank, pid;
    int64_t status;  /* as waitpid returns it */
    int64_t wall_ms; /* when the launcher saw it, by its host's clock */
    int64_t unsure;  /* as exit_root_cause returns it: above 0, another rank may be the root cause */
    /* For a round that hangs. strength: enum meeting_strength. place: a hash of the rank's code line; 0:
     * none. number: of its last collective call; 0: none. Among causes of equal strength the leader chooses
     * the one with the rarest `place`, then the one with the lowest `number`. */
    int64_t strength, place, number;
    char host[MEETING_NAME_BYTES];
    char error_file[MEETING_NAME_BYTES]; /* "": none */
    char message[MEETING_MESSAGE_BYTES]; /* "": none */
    char pad[7];                         /* 0, so that no unset bytes are sent */
};

struct meeting_node {
    /* phase: enum node_phase; beat: number of this record, 1, 2, ... */
    int64_t phase, round, beat;
    int64_t version;      /* of the newest meeting_state that the node has read; 0: none */
    int64_t nproc;        /* ranks on the node */
    int64_t wanted;       /* its fixed node rank, or its sort key for node ranks; -1: any */
    int64_t leaders;      /* 1: this node hosts the leader; the leader fills it in */
    int64_t port;         /* a free port for MASTER_PORT, in case it becomes node 0 */
    int64_t signal;       /* of NODE_LEAVING */
    int64_t heard_end;    /* 1: it has read the state STAGE_ENDED */
    int64_t quiet;        /* in NODE_RUNNING: 1: its ranks have made no progress for the hang timeout */
    int64_t number, call; /* with `quiet`: the last collective call of its ranks (rank_state.h); 0: none */
    int64_t done;         /* with `quiet`: `done` of the state that it has read */
    struct steps steps;   /* of its ranks in `round`; updated with heartbeats only */
    char addr[MEETING_NAME_BYTES]; /* for MASTER_ADDR */
    char role[MEETING_NAME_BYTES]; /* of its ranks; only the first MEETING_NAME_BYTES - 1 bytes are
                                    * compared */
    struct meeting_cause cause;
};

/* quorum.h describes the stages. */
enum meeting_stage { STAGE_FORMING = 1, STAGE_RUNNING, STAGE_ENDED };

/* Why the run ended. */
enum meeting_end {
    END_NONE,    /* it has not */
    END_SUCCESS, /* all ranks exited with status 0 */
    END_FAILED,  /* a rank, or node `blame` itself, failed: see cause */
    END_SIGNAL,  /* node `blame` received a signal */
    END_LOST,    /* node `blame` was lost */
    END_TIMEOUT, /* too few nodes joined in time */
};

struct meeting_member {
    int64_t ticket, nproc;
    int64_t role; /* index of the first member with its role */
};

struct meeting_state {
    /* version: grows with every change of the state; stage: enum meeting_stage. */
    int64_t version, stage, round;
    int64_t restarts;      /* restarts used by the run */
    int64_t keep_alive_ms; /* the leader's heartbeat interval */
    int64_t end, blame;    /* enum meeting_end; ticket of the node that ended the run, 0: none */
    int64_t master_port;
    char master_addr[MEETING_NAME_BYTES];
    char why[MEETING_WHY_BYTES]; /* why this round began or the run ended; for log lines */
    /* In STAGE_FORMING, for messages of waiting nodes; updated every QUORUM_COUNT_MS. */
    int64_t here;                        /* nodes that have joined */
    int64_t left_ms;                     /* until the join timeout, at the time of this version */
    char missing[MEETING_MISSING_BYTES]; /* node ranks that have not joined, "1, 4..7"; "": not known */
    struct meeting_cause cause;
    /* In STAGE_RUNNING. hung: 1: all members are quiet, so the round hangs, and each member must report its
     * suspect. number, call: the last collective call that any rank has begun; 0: none. */
    int64_t hung, number, call;
    int64_t asks; /* 1: a failure is unsure: nodes report ranks that raised an exception (exit_mark_raised) */
    /* In STAGE_RUNNING: members whose ranks all exited with status 0. The end of a member counts as progress:
     * the other members restart their hang timeout. The leader updates it once all others are quiet. */
    int64_t done;
    int64_t n; /* members of the round, in the order of their node ranks */
    struct meeting_member members[MEETING_NODES_MAX];
};

/* get checks and copies a record's bytes; put appends a state's, of its members the first n (common/buf.h records an
 * overflow). */
int meeting_get_node(const char *bytes, size_t len, struct meeting_node *ret, struct err *err) MUST_CHECK;
void meeting_put_state(const struct meeting_state *s, struct buf *out);
int meeting_get_state(const char *bytes, size_t len, struct meeting_state *ret, struct err *err) MUST_CHECK;

/* The node's name for messages: "node 10.0.0.7", or "node 3 (10.0.0.7)" when `wanted` is set. Returns buf. */
const char *meeting_node_name(const struct meeting_node *n, char buf[static MEETING_NAME_BYTES + 32]);

#endif
