/* quorum.h - the leader's decisions: which nodes are members of the next round, when it begins, and how the
 * run ends. leader.c calls it. A state machine without system calls: time and nodes' states are arguments.
 *
 * Stages:    FORMING waits for nodes to join the round. It ends
 *            - with RUNNING: when config.max nodes have joined; when at least config.min nodes and all known
 *              nodes have joined, and none was lost; otherwise last_call_ms after config.min have joined,
 *              and, while members still stop their ranks, not before stop_ms after the end of the last round;
 *            - with ENDED: when fewer than config.min have joined by the join timeout; when a launcher fails;
 *            when a node leaves that the run cannot do without; when a joined node falls silent in a run of
 *            fixed size without restarts. RUNNING ends
 *            - with FORMING of the next round: when a rank fails, which uses a restart; when a node is lost
 *              (also by not starting its ranks for two silences), leaves or joins (up to config.max, until a
 *              member is done), which uses no restart;
 *            - with ENDED: when all members are done; when a rank fails with no restart left or with exit code 2
 *              (wrong usage); when a launcher fails; when a node leaves that the run cannot do without; when
 *              a node is lost in a run of fixed size without restarts;
 *            - also with ENDED: when the round hangs, that is, all members that are not done are quiet. The
 *              leader sets state.hung, waits QUORUM_HANG_MS for the members' suspects, and ends the run with
 *              the strongest one, whatever config.restarts is.
 *            ENDED is final. A run can go on without a node if its size is not fixed, the node does not host the
 *            leader, and, while RUNNING, config.min nodes are left.
 * Ownership: quorum_init fills *q, quorum_release frees its slots. Strings of the configuration are borrowed.
 * Units:     now_ms and _ms fields are milliseconds of the caller's clock (awake.h).
 */
#ifndef TK_RENDEZVOUS_QUORUM_H
#define TK_RENDEZVOUS_QUORUM_H

#include "rendezvous/meeting.h"

#include <stdbool.h>

/* How long the leader waits, after an unsure failure (meeting_cause), for the root cause from another node.
 * It waits longer while a member's heartbeat is late, until the heartbeat arrives or the member is lost: the
 * network may be down. */
enum { QUORUM_ROOT_CAUSE_MS = 1000 };

/* A node whose connection has ended counts as lost unless it uses a new connection within this time. So a killed
 * launcher is noticed within a second, and a connection reset by the network has no effect. A rank's failure
 * on another node that follows waits as long, because the loss is its likely cause. */
enum { QUORUM_RECONNECT_MS = 500 };

/* When a round hangs: how long the leader waits for all members' suspects. A launcher needs 2 to 3 s to find
 * its own. */
enum { QUORUM_HANG_MS = 4000 };

/* For this long after state.hung no launcher kills its ranks, so a rank that fails in this time failed on its
 * own. At most HANG_LOOK_MS of launcher/hang.h. */
enum { QUORUM_LOOK_MS = 400 };

/* In FORMING: the interval between updates of state.here and state.missing. A round that forms faster has
 * none. */
enum { QUORUM_COUNT_MS = 5000 };

struct quorum_config {
    int64_t min, max;            /* nodes of a round */
    bool fixed_ranks;            /* each node asks for a node rank (meeting_node.wanted) */
    int64_t restarts;            /* the most that the run may use */
    int64_t join_ms;             /* time limit for `min` nodes to join */
    int64_t last_call_ms;        /* how long to wait for more than `min` */
    int64_t stop_ms;             /* how long members may take to stop their ranks */
    int64_t keep_alive_ms;       /* heartbeat interval */
    int64_t keep_alive_attempts; /* missed heartbeats after which a node is lost */
    const char *master_addr;     /* NULL: the address of node 0 */
    int64_t master_port;         /* 0: the port that node 0 offers */
};

/* One node. */
struct quorum_slot {
    int64_t ticket;
    int64_t heard_ms;         /* when its last record arrived */
    int64_t failed_order;     /* 1 for the run's first failure, ...; 0: has not failed in this round */
    int64_t failed_ms;        /* when the failure arrived */
    int64_t steps_window;     /* the last window of its `steps` that quorum_steps used */
    bool member;              /* of the round that runs, or of the last one of a run that has ended */
    bool gone;                /* lost; a new record from it clears this */
    bool unreachable;         /* quorum_unreachable was called since its last record */
    bool disconnected;        /* its newest connection has ended */
    int64_t disconnected_ms;  /* since when */
    struct meeting_node node; /* its last record */
};

struct quorum {
    struct quorum_config config;
    struct quorum_slot *slots; /* [n] in the order of the nodes' first records */
    int n, room;
    struct meeting_state state;         /* the caller sends it to all nodes when it has changed */
    bool nobody_missing;                /* no node was lost before this round or while it forms */
    int64_t since_ms;                   /* when FORMING or RUNNING began */
    int64_t counted_ms;                 /* when quorum_count_joined updated `state` last */
    int64_t last_call_ms, unsure_ms;    /* deadlines of the last call and of an unsure failure; 0: none */
    int64_t hang_ms;                    /* with state.hung: deadline for the members' suspects */
    int64_t failures;                   /* counter for failed_order */
    char gone[MEETING_NAME_BYTES + 32]; /* name of the last lost node */
    const char *gone_how;               /* why it is lost; a static string */
};

void quorum_init(struct quorum *q, const struct quorum_config *c, int64_t now_ms);
void quorum_release(struct quorum *q);

/* Pass a new record that node `ticket` has sent. */
void quorum_hear(struct quorum *q, int64_t ticket, const struct meeting_node *node, int64_t now_ms);

/* Report that the node's process or kernel has closed its newest connection. */
void quorum_disconnected(struct quorum *q, int64_t ticket, int64_t now_ms);

/* Report that a disconnected node has authenticated a new connection: it has QUORUM_RECONNECT_MS from now
 * on. */
void quorum_returns(struct quorum *q, int64_t ticket, int64_t now_ms);

/* Report that the node sends records but receives none: it is lost until quorum_hear. */
void quorum_unreachable(struct quorum *q, int64_t ticket);

/* Take one decision. True when q->state and its version have changed: send it to the nodes and step again. */
bool quorum_step(struct quorum *q, int64_t now_ms);

/* After the steps: update state.here, left_ms and missing, for nodes that wait for the round. True when
 * q->state has changed: send it to the nodes. */
bool quorum_count_joined(struct quorum *q, int64_t now_ms);

/* While a round runs: step times over all members. False unless each member has reported a new window in this
 * round. ret->window grows with each result. */
bool quorum_steps(struct quorum *q, struct steps *ret);

/* When to call quorum_step again at the latest, if no record arrives. */
int64_t quorum_next_ms(const struct quorum *q, int64_t now_ms);

/* Whether the stage is ENDED and every node that is not lost has read it. */
bool quorum_over(const struct quorum *q);

#endif
