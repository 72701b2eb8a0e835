/* node.h - a node's side of the rendezvous (one launcher is one node): its stages, its connections to the
 * leader, and the state that it reports to the leader. meet.c calls it. A state machine without system calls:
 * time and messages are arguments, messages to send are results.
 *
 * Order:     pass all events (node_connected, node_heard, node_closed), call node_step once, then node_act
 *            until it returns false. Call node_step again at node_next_ms at the latest. Through the
 *            functions of meet.h, the launcher's main loop calls node_begins between two rounds, node_failed
 *            when a rank has failed, and node_ranks_ended when it has reaped all its ranks.
 * Ownership: node_init fills *n, node_release frees what it holds. Strings of the configuration are borrowed until
 *            node_release. A message of node_act is valid until the next call.
 * Threads:   meet*.c hold the lock of struct meet while they call functions that change *n.
 * Units:     milliseconds of the caller's clock (awake.h).
 */
#ifndef TK_RENDEZVOUS_NODE_H
#define TK_RENDEZVOUS_NODE_H

#include "rendezvous/leader.h"

enum {
    NODE_LINKS_MAX = 10,      /* the current connection, a candidate, and parked ones */
    NODE_CONNECT_MS = 1000,   /* how long a candidate may take to connect, */
    NODE_CANDIDATE_MS = 2000, /* and then until WELCOME arrives */
    NODE_REST_MS = 100,       /* between two dials */
    NODE_ANSWER_MS = 2000,    /* without HEARD for this long, the node dials a candidate */
    NODE_FAREWELL_MS = 2000,  /* how long the node waits for HEARD on its last message */
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

/* Fill in HELLO for connection `number`, and the proof for ANSWER to the leader's CHALLENGE on it. False: the
 * leader has not proved that it has the key. */
void node_hello(const struct node_config *c, uint32_t number, struct message_hello *ret);
bool node_answer(const struct node_config *c, uint32_t number, const struct message_challenge *said,
                 uint8_t answer[static MESSAGE_ANSWER_BYTES]);

/* The node's stage: connecting to the leader, waiting to join a round, ranks running, ranks ended, sending
 * LEAVING, ended. PROTOCOL.md has the transitions. */
enum node_stage { NODE_REACHES, NODE_WAITS, NODE_RUNS, NODE_RESTS, NODE_LEAVES, NODE_OVER };

/* Why a node is in NODE_OVER. */
enum node_why {
    NODE_WHY_ENDED,       /* the run has ended: see state */
    NODE_WHY_LOST,        /* the leader was lost */
    NODE_WHY_NOT_REACHED, /* no leader within the join timeout */
    NODE_WHY_NO_PLACE,    /* no place in a round within the join timeout */
    NODE_WHY_LEFT,        /* it received a signal */
    NODE_WHY_NO_KEY,      /* the leader has a key and this node has none */
};

/* A node's connections. They outlive the stages. */
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
        bool blocked;                         /* its socket's send buffer is full */
        bool close;                           /* node_act has to close it */
        int64_t since_ms;                     /* when it was dialed; with LINE_CURRENT: welcomed */
        uint8_t answer[MESSAGE_ANSWER_BYTES]; /* of LINE_CHALLENGED */
    } links[NODE_LINKS_MAX];
    uint32_t numbers;                 /* number of the last connection */
    uint8_t leader[MESSAGE_ID_BYTES]; /* the leader's id; valid with `welcomed` */
    bool welcomed;
    /* Since when the node waits for any message from the leader: since it sent NODE, or since it has no
     * connection; 0: it does not wait. */
    int64_t owed_ms;
    int64_t asked_ms;              /* when the oldest NODE without an answer was sent; 0: none */
    int64_t sent_ms;               /* when the last NODE was sent, less the time stopped since */
    int64_t sent, heard;           /* beat of the last NODE sent, and of the last one answered */
    int64_t dial_ms;               /* the earliest time of the next dial */
    int64_t broken_ms;             /* when the peer closed the current connection; 0: it is open */
    bool met;                      /* a launcher answered the last attempt to connect */
    bool dirty;                    /* `report` has changed since it was sent */
    bool lost;                     /* the leader is lost: final */
    bool keyless;                  /* the leader requires a key and this node has none: final */
    char addr[MEETING_NAME_BYTES]; /* local address of the candidate */
    char why[160];                 /* why the last attempt failed */
};

struct node {
    struct node_config config;
    enum node_stage stage;
    union { /* per stage; entering a stage writes all of its struct */
        struct {
            int64_t until_ms; /* the join timeout */
        } reach;
        struct {
            int64_t round;
            int64_t until_ms; /* while another round runs: when to stop waiting */
        } wait;
        struct {
            int64_t round;
            bool reported; /* its failure has been reported */
        } run;             /* NODE_RUNS and NODE_RESTS */
        struct {
            int64_t until_ms;
            enum node_why why;
        } leave;
        struct {
            int64_t until_ms; /* deadline of HEARD for the last message; then `done` */
            enum node_why why;
            bool done;
        } over;
    };
    int64_t stepped_ms; /* the time of the last step */
    int64_t ticket;     /* 0: not welcomed yet */
    struct node_line line;
    struct meeting_node report;  /* the state that this node sends to the leader */
    struct meeting_state *state; /* the run's; version 0: not received yet */
};

enum node_action_kind { NODE_DIAL, NODE_SEND, NODE_CLOSE };

struct node_action {
    enum node_action_kind kind;
    uint32_t number; /* of the connection; NODE_DIAL: of the one to open */
    struct message message;
};

void node_init(struct node *n, const struct node_config *c, int64_t now_ms);
void node_release(struct node *n);

/* Report that a dialed connection is open; addr: its local address, as text. */
void node_connected(struct node *n, uint32_t number, const char *addr, int64_t now_ms);
/* Report a message. False: it is not allowed on this connection: close the socket and call node_closed. */
bool node_heard(struct node *n, uint32_t number, const struct message *m, int64_t now_ms);
/* Report that bytes arrived, a complete message or not. */
void node_received(struct node *n, uint32_t number, int64_t now_ms);
/* Report that a connection ended, or that a dial failed. */
void node_closed(struct node *n, uint32_t number, enum link_end how, const char *why, int64_t now_ms);
void node_blocked(struct node *n, uint32_t number, bool blocked);

/* Change the stage according to events and deadlines. */
void node_step(struct node *n, int64_t now_ms);
bool node_act(struct node *n, struct node_action *a, int64_t now_ms);
/* This process was stopped for `ms`, which the caller's clock leaves out. The leader's does not: the next heartbeat is
 * due as much earlier. */
void node_was_stopped(struct node *n, int64_t ms);
int64_t node_next_ms(const struct node *n, int64_t now_ms);

/* While another round runs: when this node stops waiting to join; INT64_MAX: never. */
int64_t node_spare_until_ms(const struct node *n);

/* True, once per round, when a round begins with this node: start its ranks. *rank: its node rank. */
bool node_begins(struct node *n, int *rank);
/* True while the launcher has to stop its ranks: the round is over, the run has ended, or the leader is
 * lost. */
bool node_must_stop(const struct node *n);
/* Report that the launcher has reaped all its ranks; `good`: all exited with status 0. Before good=false,
 * call node_failed or node_leave, unless the round is over. */
void node_ranks_ended(struct node *n, bool good);
/* Report that a rank, or the launcher itself, failed. Only the first call of a round has an effect. */
void node_failed(struct node *n, const struct meeting_cause *cause);
/* Report that the ranks make no progress, or do again; number, call: as in struct meeting_node. */
void node_quiet(struct node *n, bool quiet, int64_t number, int64_t call);
/* Set the ranks' step times; the next heartbeat sends them. */
void node_report_steps(struct node *n, const struct steps *steps);
/* Leave the run: the launcher received `signal`, or gives up waiting (0). The node reports no later failure.
 * While ranks run, it leaves after node_ranks_ended; before the first STATE it ends at once. */
void node_leave(struct node *n, int signal, int64_t now_ms);
/* Whether the node has nothing more to do or to send. */
bool node_over(const struct node *n);

#endif
