/* leader.h - the leader's side of the rendezvous: maps connections to nodes, and passes their states to quorum.h,
 * which decides. meet.c calls it on the node that hosts the leader. A state machine without system calls: time and
 * received messages are arguments, messages to send are results.
 *
 * Order:     pass all events (leader_opened, leader_heard, leader_closed), call leader_decide once, then leader_act
 *            until it returns false. Call leader_decide again at leader_next_ms at the latest.
 * Ownership: leader_init fills *l, leader_release frees what it holds. Strings of the configuration are borrowed. A message of
 *            leader_act is valid until the next call.
 * Units:     milliseconds of the caller's clock (awake.h).
 */
#ifndef TK_RENDEZVOUS_LEADER_H
#define TK_RENDEZVOUS_LEADER_H

#include "rendezvous/message.h"
#include "rendezvous/quorum.h"

enum {
    LEADER_LINKS_MAX = 4 * MEETING_NODES_MAX, /* connections, welcomed or not */
    LEADER_GREET_MS = 10000,                  /* from accept to the first NODE message */
};

struct leader_config {
    struct quorum_config quorum;
    const char *run_id;
    uint8_t id[MESSAGE_ID_BYTES]; /* random */
    struct jobkey key;
    uint8_t seed[JOBKEY_NONCE_BYTES]; /* random, of its nonces */
};

/* How a connection ended: the peer's process or kernel closed it, or the network stopped answering (ETIMEDOUT,
 * ...). */
enum link_end { LINK_CLOSED, LINK_SILENT };

/* A connection. */
struct leader_link {
    enum {
        LINK_FREE,
        LINK_OPENED,
        LINK_GREETED,
        LINK_CHALLENGED,
        LINK_ANSWERED,
        LINK_WELCOMED,
        LINK_REFUSED
    } at;
    bool local;          /* from the node in the leader's process */
    bool blocked;        /* its socket's send buffer is full */
    int64_t came_ms;     /* when it was accepted */
    int64_t ticket;      /* its node's; 0: no valid ANSWER has arrived */
    int64_t beat, heard; /* `beat` of the last NODE received, and of the last HEARD sent */
    int64_t version;     /* of the last STATE sent */
    int64_t refusal;     /* enum message_refusal; 0: none */
    uint64_t serial;     /* counts all connections; its nonce is derived from it */
    struct message_hello hello;
};

/* A node that was welcomed; its ticket is its index + 1. */
struct leader_node {
    uint8_t id[MESSAGE_ID_BYTES];
    uint32_t newest;     /* number of the newest connection over which it sent NODE; 0: none */
    int link;            /* index of that connection; -1: it has ended */
    int64_t beat;        /* of its last NODE */
    int64_t sent, knows; /* version of the newest STATE sent to it, and of the newest that it acknowledged */
    int64_t behind_ms;   /* since when `knows` is below `sent` and has not grown; 0: it is up to date */
};

struct leader {
    struct leader_config config;
    struct quorum quorum;
    struct leader_link *links; /* [n_links], some of them LINK_FREE */
    struct leader_node *nodes; /* [n_nodes] */
    int n_links, room_links, n_nodes, room_nodes;
    int open;
    uint64_t serials;   /* connections so far */
    int next;           /* the link at which leader_act continues */
    struct steps steps; /* of the whole run; window 0: none yet */
};

struct leader_action {
    enum { LEADER_SEND, LEADER_CLOSE } kind;
    int link;
    struct message message; /* of LEADER_SEND */
};

void leader_init(struct leader *l, const struct leader_config *c, int64_t now_ms);
void leader_release(struct leader *l);

/* True: no valid ANSWER has arrived over the connection and the leader has not refused it. The caller may replace it
 * by a new one (leader_displace, then LEADER_CLOSE). *greeted: a HELLO arrived. *came_ms: when it was accepted. */
bool leader_unauthenticated(const struct leader *l, int link, bool *greeted, int64_t *came_ms);
void leader_displace(struct leader *l, int link);

/* Report an accepted connection. Returns its index for the calls below; leader_closed or LEADER_CLOSE frees it.
 * Beyond LEADER_LINKS_MAX the next leader_act refuses it. */
int leader_opened(struct leader *l, bool local, int64_t now_ms);
/* Report a message that arrived over it. False: it is not allowed there: close the socket and call leader_closed. */
bool leader_heard(struct leader *l, int link, const struct message *m, int64_t now_ms);
void leader_closed(struct leader *l, int link, enum link_end how, int64_t now_ms);
/* Set whether the socket's send buffer is full. The leader sends nothing over a blocked connection. */
void leader_blocked(struct leader *l, int link, bool blocked);
/* The longest frame that the peer may send now, in bytes. */
size_t leader_frame_max(const struct leader *l, int link);

/* Take the decisions that follow from the events so far. */
void leader_decide(struct leader *l, int64_t now_ms);
/* The next thing to do; false: nothing more. The link of LEADER_CLOSE is free afterwards. */
bool leader_act(struct leader *l, struct leader_action *a);
int64_t leader_next_ms(const struct leader *l, int64_t now_ms);

#endif
