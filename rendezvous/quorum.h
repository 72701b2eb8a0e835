/* quorum.h - the leader's decisions: which nodes are in the next round, when it begins, and how the run ends. A
 * state machine without system calls: time and nodes' states are arguments.
 *
 * Stages:    FORMING waits for nodes to join the round. It ends
 *            - with RUNNING: when config.max nodes have joined; when config.min have joined and all known nodes
 *              have and none was lost; otherwise last_call_ms after config.min have joined, and, while members still
 *              stop their ranks, not before stop_ms after the end of the last round;
 *            - with ENDED: when fewer than config.min have joined by the join timeout; when a launcher fails;
 *              when a node leaves without which the run cannot go on; when a joined node falls silent in a run
 *              of fixed size without restarts.
 *            RUNNING ends
 *            - with FORMING of the next round: when a rank fails, which uses a restart; when a node is lost
 *              (also by not starting its ranks for two silences), leaves or joins (up to config.max, until a
 *              member is done), which uses none;
 *            - with ENDED: when all members are done; when a rank fails with no restart left or with exit code 2
 *              (wrong usage); when a launcher fails; when a node leaves without which the run cannot go on; when
 *              a node is lost in a run of fixed size without restarts.
 *            - with ENDED as well when the round hangs: all members that are not done are quiet. The leader says so
 *              (state.hung), waits QUORUM_HANG_MS for their suspects, and ends the run with the strongest one,
 *              whatever config.restarts says.
 *            ENDED is final. A run can go on without a node if its size is not fixed, the node does not host the
 *            leader, and, while RUNNING, config.min nodes are left.
 * Ownership: quorum_init fills *q, quorum_release frees its slots. Strings of the configuration are borrowed.
 * Units:     now_ms and _ms fields are milliseconds of the caller's monotonic clock.
 */
#ifndef TK_RENDEZVOUS_QUORUM_H
#define TK_RENDEZVOUS_QUORUM_H

#include "rendezvous/meeting.h"

#include <stdbool.h>

/* An unsure failure (meeting_cause) waits this long for the root cause from another node; longer while a member
 * owes a heartbeat, until that is heard or counts as lost: the network between the nodes may be cut. */
enum { QUORUM_ROOT_CAUSE_MS = 1000 };

/* A node whose connection has ended counts as lost unless it uses a new connection within this time. So a killed
 * launcher is noticed within a second, and a connection reset by the network has no effect. A rank's failure on
 * another node that follows waits as long, because the loss most likely caused it. */
enum { QUORUM_CUT_MS = 500 };

/* Who does something later than it was due by more than this stood still (SIGSTOP, a frozen container): nobody else is judged by
 * that time. */
enum { QUORUM_PAUSE_MS = 100 };

/* When a round hangs, how long to wait for all members' suspects: launchers need 2 to 3 s to find theirs. */
enum { QUORUM_HANG_MS = 4000 };

/* For so long after that no launcher kills its ranks, so what fails meanwhile does so by itself. At most launcher/hang.h's HANG_LOOK_MS. */
enum { QUORUM_LOOK_MS = 400 };

/* The minimal interval between updates of who has joined, after FORMING has begun. A round that forms faster
 * gets none. */
enum { QUORUM_TELL_MS = 5000 };

struct quorum_config {
    int64_t min, max;      /* nodes of a round */
    bool fixed_ranks;      /* each node asks for a node rank (meeting_node.wanted) */
    int64_t restarts;      /* at most */
    int64_t join_ms;       /* timeout for `min` nodes to join */
    int64_t last_call_ms;  /* how long to wait for more than `min` */
    int64_t stop_ms;       /* how long members may take to stop their ranks; the last call waits for them */
    int64_t keep_alive_ms; /* heartbeat interval */
    int64_t keep_alive_attempts; /* missed heartbeats after which a node is lost */
    const char *master_addr;     /* NULL: node 0's address */
    int64_t master_port;         /* 0: the port that node 0 offers */
};

/* One node. */
struct quorum_slot {
    int64_t ticket;
    int64_t heard_ms;         /* when its state last changed */
    int64_t failed_order;     /* 1 for the run's first failure, ...; 0: has not failed in this round */
    int64_t failed_ms;        /* when it was read */
    int64_t steps_window;     /* of its `steps` when quorum_steps took them */
    bool gone;                /* lost; a new state from it clears this */
    bool deaf;                /* quorum_deaf was called since its last state */
    bool cut;                 /* its newest connection has ended */
    int64_t cut_ms;           /* when */
    bool spared;              /* that time began again after a pause of this process: once */
    int64_t cut_connection;   /* number of the last connection that ended; 0: none */
    struct meeting_node node; /* its last state */
};

struct quorum {
    struct quorum_config config;
    struct quorum_slot *slots; /* [n] in the order in which nodes were first read */
    int n, room;
    struct meeting_state state;         /* to be published when it has changed */
    bool nobody_missing;                /* no node was lost before or while this round forms */
    int64_t since_ms;                   /* when FORMING or RUNNING began */
    int64_t told_ms;                    /* last update of who has joined */
    int64_t last_call_ms, unsure_ms;    /* deadlines of the last call and of an unsure failure; 0: none */
    int64_t hang_ms;                    /* with state.hung: deadline of the members' suspects */
    int64_t due_ms;                     /* when the next step is due; 0: at once */
    int64_t failures;                   /* counter for failed_order */
    char gone[MEETING_NAME_BYTES + 32]; /* name of the last node lost */
    const char *gone_how;               /* why it counts as lost; a static string */
};

void quorum_init(struct quorum *q, const struct quorum_config *c, int64_t now_ms);
void quorum_release(struct quorum *q);

/* Pass the state that node `ticket` has sent. One equal to the last (the same beat) is no heartbeat. */
void quorum_hear(struct quorum *q, int64_t ticket, const struct meeting_node *node, int64_t now_ms);

/* Connection `connection` of node `ticket` has ended, by its process or its kernel. */
void quorum_cut(struct quorum *q, int64_t ticket, int64_t connection, int64_t now_ms);

/* The node whose connection has ended comes back over another: it has QUORUM_CUT_MS from now on. */
void quorum_returns(struct quorum *q, int64_t ticket, int64_t now_ms);

/* The node speaks, but what it is sent does not reach it: it is lost until quorum_hear. */
void quorum_deaf(struct quorum *q, int64_t ticket);

/* Take one decision. True when q->state and its version have changed: publish it and step again. */
bool quorum_step(struct quorum *q, int64_t now_ms);

/* After the steps: update state.here, left_ms and missing for nodes that wait for the round. True when q->state
 * has changed: publish it. */
bool quorum_tell(struct quorum *q, int64_t now_ms);

/* While a round runs: the times of steps over all members. False unless each of them has told a window, in this round, that
 * has not been taken yet. ret->window grows with each. */
bool quorum_steps(struct quorum *q, struct steps *ret);

/* When to step again at the latest, if no node's state changes. */
int64_t quorum_next_ms(const struct quorum *q, int64_t now_ms);

/* Whether the stage is ENDED and every node that is still there has read it. */
bool quorum_over(const struct quorum *q);

#endif
