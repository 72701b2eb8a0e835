/* node.h - one launcher's part in a run of several nodes: its phases, its connections to the leader, and the state
 * that it reports to the leader. A state machine without system calls: time and messages are arguments, messages to
 * send are results.
 *
 * Order:     after what arrived was handed over (connected, heard, closed) call node_step once, then node_act until it is false.
 *            Call node_step again at node_next_ms at the latest. The launcher's main loop calls node_begins between
 *            two rounds, node_failed when a rank has failed, and node_rested when all its ranks have ended and were
 *            reaped. It reaches them through the meet_ functions.
 * Ownership: node_init fills *n, node_release frees what it holds. Strings of the configuration are borrowed until
 *            node_release. A message of node_act is valid until the next call.
 * Threads:   meet.c, meet_wires.c and meet_reach.c call the functions that change *n with the lock of struct meet
 *            held.
 * Units:     milliseconds of the caller's monotonic clock.
 */
#ifndef TK_RENDEZVOUS_NODE_H
#define TK_RENDEZVOUS_NODE_H

#include "rendezvous/leader.h"

enum {
    NODE_LINKS_MAX = 10,          /* the current connection, a candidate, and parked ones */
    NODE_CONNECT_MS = 1000,       /* how long a candidate may take to be connected, */
    NODE_CANDIDATE_MS = 2000,     /* and then to be welcomed */
    NODE_REST_MS = 100,           /* between two dials */
    NODE_ANSWER_MS = 2000,        /* the leader's longest time to answer before another connection is tried */
    NODE_FAREWELL_MS = 2000,      /* for the leader to hear the last word */
    NODE_GONE_MS = QUORUM_CUT_MS, /* to reach the leader again after it ended the connection */
    NODE_PAUSE_MS = QUORUM_PAUSE_MS,
};

struct node_config {
    const char *run_id;
    uint8_t id[MESSAGE_ID_BYTES]; /* random */
    struct jobkey key;
    uint8_t seed[JOBKEY_NONCE_BYTES]; /* random, of its nonces */
    int64_t join_ms, keep_alive_ms, keep_alive_attempts;
    int64_t nproc, wanted, port; /* as in struct meeting_node */
    const char *role, *addr;     /* addr NULL: the local address of the connection */
};

/* HELLO over connection `number`, and the answer to the leader's CHALLENGE there; false: the leader does not have the key. */
void node_hello(const struct node_config *c, uint32_t number, struct message_hello *ret);
bool node_answer(const struct node_config *c, uint32_t number, const struct message_challenge *said,
                 uint8_t answer[static MESSAGE_ANSWER_BYTES]);

/* PROTOCOL.md describes the phases. */
enum node_stage { NODE_REACHES, NODE_WAITS, NODE_RUNS, NODE_RESTS, NODE_LEAVES, NODE_OVER };

/* Why a node is over. */
enum node_why {
    NODE_WHY_ENDED,       /* the run has ended: see state */
    NODE_WHY_LOST,        /* the leader was lost */
    NODE_WHY_NOT_REACHED, /* no leader within the join timeout */
    NODE_WHY_NO_PLACE,    /* no place in a round within the join timeout */
    NODE_WHY_LEFT,        /* it received a signal */
    NODE_WHY_NO_KEY,      /* the leader has a key and this node has none */
};

/* The connections, which outlive the phases. */
struct node_line {
    struct node_link {
        uint32_t number; /* 0: free */
        enum {
            LINE_DIALED,
            LINE_CONNECTED,
            LINE_HELLO,
            LINE_CHALLENGED,
            LINE_ANSWER,
            LINE_CURRENT,
            LINE_PARKED
        } at;
        bool blocked;                         /* it takes no bytes at present */
        bool close;                           /* to be closed */
        int64_t since_ms;                     /* when it was dialed */
        uint8_t answer[MESSAGE_ANSWER_BYTES]; /* of LINE_CHALLENGED */
    } links[NODE_LINKS_MAX];
    uint32_t numbers;                 /* of the last connection */
    uint8_t leader[MESSAGE_ID_BYTES]; /* id; known once welcomed */
    bool welcomed;
    /* Since when the node waits for any message of the leader: after it sent a NODE message, or since it has no
     * connection; 0: it does not wait. */
    int64_t owed_ms;
    int64_t asked_ms;              /* when the oldest NODE without an answer was sent; 0: none */
    int64_t sent_ms;               /* when the last NODE was sent */
    int64_t sent, heard;           /* beat of the last NODE sent, and of the last one answered */
    int64_t dial_ms;               /* no dial before */
    int64_t broken_ms;             /* when the leader ended the current connection; 0: it did not */
    bool spared;                   /* that time began again after a pause of this process: once */
    bool met;                      /* a launcher answered the last attempt, with any message */
    bool dirty;                    /* the node's state has changed since it was sent */
    bool lost;                     /* the leader: final */
    bool keyless;                  /* the leader has asked for a key, and there is none: final */
    char addr[MEETING_NAME_BYTES]; /* local address of the candidate */
    char why[160];                 /* why the last try failed */
};

struct node {
    struct node_config config;
    enum node_stage stage;
    union { /* what a phase needs; entering it writes all of it */
        struct {
            int64_t until_ms; /* the join timeout */
        } reach;
        struct {
            int64_t round;
            int64_t until_ms; /* of the wait while another round runs */
        } wait;
        struct {
            int64_t round;
            bool told; /* its failure */
        } run;         /* of NODE_RUNS and NODE_RESTS */
        struct {
            int64_t until_ms;
            enum node_why why;
        } leave;
        struct {
            int64_t until_ms; /* for the leader to hear that this node knows; then `done` */
            enum node_why why;
            bool done;
        } over;
    };
    int64_t stepped_ms;
    int64_t due_ms; /* when the next step was due; 0: not known yet */
    int64_t ticket; /* 0: not welcomed yet */
    struct node_line line;
    struct meeting_node say;     /* the state that this node sends to the leader */
    struct meeting_state *state; /* the run's, version 0: not heard yet */
};

enum node_action_kind { NODE_DIAL, NODE_SEND, NODE_CLOSE };

struct node_action {
    enum node_action_kind kind;
    uint32_t number; /* of the connection; NODE_DIAL: of the one to open */
    struct message message;
};

void node_init(struct node *n, const struct node_config *c, int64_t now_ms);
void node_release(struct node *n);

/* A dialed connection is open; addr: its local address, as text. */
void node_connected(struct node *n, uint32_t number, const char *addr, int64_t now_ms);
/* A message came over a connection; false: it does not belong there, close it and call node_closed. */
bool node_heard(struct node *n, uint32_t number, const struct message *m, int64_t now_ms);
/* Bytes came over a connection, whether they are a whole message or not. */
void node_received(struct node *n, uint32_t number, int64_t now_ms);
/* A connection ended, or a dial failed. */
void node_closed(struct node *n, uint32_t number, enum link_end how, const char *why, int64_t now_ms);
void node_blocked(struct node *n, uint32_t number, bool blocked);

/* Change the phase on what was heard and on deadlines. */
void node_step(struct node *n, int64_t now_ms);
bool node_act(struct node *n, struct node_action *a, int64_t now_ms);
int64_t node_next_ms(const struct node *n, int64_t now_ms);

/* Until when it waits for a place while another round runs; INT64_MAX: it does not. */
int64_t node_spare_until_ms(const struct node *n);

/* Whether a round begins with this node: then its ranks are to be started. True once a round. *rank: its node rank. */
bool node_begins(struct node *n, int *rank);
/* While the ranks run: true if the launcher has to stop them. The round is over, the run has ended, or the leader is
 * lost. */
bool node_must_stop(const struct node *n);
/* All its ranks have ended and were reaped; `good`: with status 0. With good=false the caller has called node_failed
 * or node_leave before, or the round is over. */
void node_rested(struct node *n, bool good);
/* One of its ranks, or the launcher itself, failed; the first call of a round counts. */
void node_failed(struct node *n, const struct meeting_cause *cause);
/* Its ranks show no sign of life, or do again; number, call: as in struct meeting_node. */
void node_quiet(struct node *n, bool quiet, int64_t number, int64_t call);
/* How long its ranks take for a step; told with the next heartbeat. */
void node_steps(struct node *n, const struct steps *steps);
/* The launcher received `signal`; 0: it only leaves. Later failures are not reported. While ranks run, the node
 * leaves after node_rested; before the first state arrived, it is over at once. */
void node_leave(struct node *n, int signal, int64_t now_ms);
/* Whether the node has nothing more to do or to say. */
bool node_over(const struct node *n);

#endif
