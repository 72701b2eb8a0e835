/* quorum.h - who is in the next round, when it begins, and how the run ends. Pure: time and news are arguments.
 *
 * Stages: Forming waits for nodes: it ends at once with the most nodes, with the fewest after a last call (at once when
 *         all nodes known of are there and none was lost), or in vain: after the join timeout, or when one that has
 *         joined falls silent in a run that a loss ends. Running lasts until a rank fails anywhere (the next round,
 *         which uses a restart; none begins after a wrong usage, exit code 2), the membership changes (the next round, which uses none), or all nodes are done.
 *         Ended is for good.
 * Units:  milliseconds of the caller's monotonic clock.
 */
#ifndef TK_RENDEZVOUS_QUORUM_H
#define TK_RENDEZVOUS_QUORUM_H

#include "rendezvous/meeting.h"

#include <stdbool.h>

/* A failure that is only "a peer was lost" waits so long for a better one from another node. */
enum { QUORUM_ROOT_CAUSE_MS = 1000 };

/* A node whose connection has ended is lost unless it is heard over a new one within this: a launcher that was killed is
 * noticed within a second, and a connection that something on the way has reset costs nothing. A failure elsewhere that follows waits as long: it is
 * most likely the loss's own. */
enum { QUORUM_CUT_MS = 500 };

/* How many have come is news so long after the round began to form, and as long after the last such news: where all come in time,
 * nothing is told. */
enum { QUORUM_TELL_MS = 5000 };

struct quorum_config {
    int64_t min, max; /* nodes */
    bool fixed_ranks; /* each node says which rank it is */
    int64_t restarts; /* at most */
    int64_t join_ms;  /* for `min` nodes to come */
    int64_t last_call_ms;
    int64_t keep_alive_ms;
    int64_t keep_alive_attempts; /* beats missed before a node is lost */
    const char *master_addr;     /* NULL: node 0's own */
    int64_t master_port;         /* 0: node 0's choice */
};

struct quorum_slot {
    int64_t ticket;
    int64_t heard_ms;
    int64_t failed_order; /* 0: has not failed in this round */
    int64_t failed_ms;
    bool gone;       /* lost; a new word brings it back */
    bool cut;        /* its connection has ended ... */
    int64_t cut_ms;  /* ... then ... */
    int64_t cut_tie; /* ... and this was the last that did; 0: none has */
    struct meeting_node node;
};

struct quorum {
    struct quorum_config config;
    struct quorum_slot *slots; /* by ticket */
    int n, room;
    struct meeting_state state;
    bool nobody_missing;             /* this round forms without a loss behind it */
    int64_t since_ms;                /* forming */
    int64_t told_ms;                 /* who has come */
    int64_t last_call_ms, unsure_ms; /* deadlines; 0: none */
    int64_t stepped_ms;
    int64_t failures;
    char gone[MEETING_NAME_BYTES + 32]; /* the last node lost */
    const char *gone_how;               /* a static string */
};

void quorum_init(struct quorum *q, const struct quorum_config *c, int64_t now_ms);
void quorum_release(struct quorum *q);

/* What node `ticket` says; a word heard before is no sign of life. */
void quorum_hear(struct quorum *q, int64_t ticket, const struct meeting_node *node, int64_t now_ms);

/* The store has seen connection `tie` of node `ticket` end. */
void quorum_cut(struct quorum *q, int64_t ticket, int64_t tie, int64_t now_ms);

/* Is the node known? */
bool quorum_knows(const struct quorum *q, int64_t ticket);

/* Decide; true when q->state has changed (and its version with it). */
bool quorum_step(struct quorum *q, int64_t now_ms);

/* Behind the steps: true when those who wait for the round to begin have news of who has come, in q->state. */
bool quorum_tell(struct quorum *q, int64_t now_ms);

/* When to step again though nothing is heard. */
int64_t quorum_next_ms(const struct quorum *q, int64_t now_ms);

/* Ended, and every living node knows it. */
bool quorum_over(const struct quorum *q);

#endif
