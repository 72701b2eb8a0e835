/* meeting.h - what nodes and the leader of a meeting write into the store for each other, as text. Pure.
 *
 * Every node has one key that says how it is (struct meeting_node) and writes it anew at each change and at each
 * heartbeat; the leader has one key that says where the run stands (struct meeting_state). Both are levels, not events:
 * who missed one reads the next. Counters wake those that wait.
 *
 * Keys:   "tickets" counts nodes; "node/<ticket>" is a node's word, "posts" counts changes among them; "state" is the
 *         leader's word, "version" its number; "leader" tells one leader from another at the same address. "cut/<ticket>" is the
 *         last tie of a node that the store has seen end, "cuts" counts them all.
 * Errors: ERR_INVALID when the bytes are not what was written; the output is then unspecified.
 */
#ifndef TK_RENDEZVOUS_MEETING_H
#define TK_RENDEZVOUS_MEETING_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <stdint.h>

enum {
    MEETING_NODES_MAX = 2000, /* their list is one value of the store */
    MEETING_TICKETS_MAX =
        16 * MEETING_NODES_MAX, /* launchers in the life of a run; later ones are not heard */
    MEETING_NAME_BYTES = 256,   /* a DNS name is shorter */
    MEETING_MESSAGE_BYTES = 1001,
    MEETING_WHY_BYTES = 400,
    MEETING_MISSING_BYTES = 120,
};

/* How a node is; numbers of the wire. */
enum node_phase {
    NODE_JOINING = 1, /* wants to be in `round` */
    NODE_RUNNING,     /* its ranks of `round` run, or are being stopped */
    NODE_FAILED,      /* one of its ranks failed in `round`: see cause */
    NODE_DONE,        /* all its ranks of `round` ended well */
    NODE_LEAVING,     /* told to go by `signal`; 0: waits for a place no longer */
};

/* A failed rank; rank -1: the launcher itself could not go on. */
struct meeting_cause {
    int64_t rank, local_rank, pid;
    int64_t status;  /* as waitpid gives it */
    int64_t wall_ms; /* when it was seen, by the clock of its node */
    int64_t unsure;  /* 1: it only says that a peer was lost */
    char host[MEETING_NAME_BYTES];
    char error_file[MEETING_NAME_BYTES]; /* "": none */
    char message[MEETING_MESSAGE_BYTES]; /* "": none */
};

struct meeting_node {
    int64_t phase, round, beat;
    int64_t tie; /* the newest of its connections whose end the store will write down; 0: none yet */
    int64_t nproc;
    int64_t wanted;  /* node rank, -1: any */
    int64_t leaders; /* 1: the store is in its process */
    int64_t port;    /* for MASTER_PORT, should it be node 0 */
    int64_t signal;  /* of NODE_LEAVING */
    int64_t heard_end;
    char addr[MEETING_NAME_BYTES]; /* for MASTER_ADDR */
    struct meeting_cause cause;
};

enum meeting_stage { STAGE_FORMING = 1, STAGE_RUNNING, STAGE_ENDED };

enum meeting_end {
    END_NONE,
    END_SUCCESS,
    END_FAILED,  /* cause */
    END_SIGNAL,  /* node `blame` was told to go */
    END_LOST,    /* node `blame` fell silent */
    END_TIMEOUT, /* too few nodes came */
};

struct meeting_member {
    int64_t ticket, nproc;
};

struct meeting_state {
    int64_t version, stage, round;
    int64_t restarts; /* used, over all nodes */
    int64_t keep_alive_ms;
    int64_t end, blame; /* a ticket, 0: nobody */
    int64_t master_port;
    char master_addr[MEETING_NAME_BYTES];
    char why[MEETING_WHY_BYTES]; /* this round was begun, or the run ended; for people */
    /* Of STAGE_FORMING, for those who wait; told some seconds after it was so. */
    int64_t here;                        /* nodes that have joined */
    int64_t left_ms;                     /* until the join timeout, when this was said */
    char missing[MEETING_MISSING_BYTES]; /* ranks of nodes that have not, "1, 4..7"; "": not known */
    struct meeting_cause cause;
    int64_t n; /* members of the round, in the order of their node ranks */
    struct meeting_member members[MEETING_NODES_MAX];
};

int meeting_put_node(const struct meeting_node *n, struct buf *out, struct err *err) MUST_CHECK;
int meeting_get_node(const char *text, size_t len, struct meeting_node *ret, struct err *err) MUST_CHECK;
int meeting_put_state(const struct meeting_state *s, struct buf *out, struct err *err) MUST_CHECK;
int meeting_get_state(const char *text, size_t len, struct meeting_state *ret, struct err *err) MUST_CHECK;

/* "node 10.0.0.7"; "node 3 (10.0.0.7)" when it wants a rank. */
const char *meeting_node_name(const struct meeting_node *n, char buf[static MEETING_NAME_BYTES + 32]);

#endif
