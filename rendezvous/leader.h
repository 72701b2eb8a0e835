/* leader.h - the leader of a run: which connection belongs to which node, what each is sent, and by quorum.h what is decided. A
 * state machine without system calls: time and messages are arguments, messages to send are results.
 *
 * Order:     after what arrived was handed over (opened, heard, closed) call leader_decide once, then leader_act until it is
 *            false. Call leader_decide again at leader_next_ms at the latest.
 * Ownership: leader_init fills *l, leader_release frees what it holds. Strings of the configuration are borrowed. A message of
 *            leader_act is valid until the next call.
 * Units:     milliseconds of the caller's monotonic clock.
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

/* How a connection ended: the peer's process or kernel ended it, or the network stopped to answer. */
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
    bool local;          /* of the leader's own node */
    bool blocked;        /* it takes no bytes at present */
    int64_t came_ms;     /* when it was opened */
    int64_t ticket;      /* of its node; 0: no valid ANSWER has arrived */
    int64_t beat, heard; /* of its last NODE, and of the last HEARD sent */
    int64_t version;     /* of the last STATE sent */
    int64_t refusal;     /* enum message_refusal; 0: none */
    uint64_t serial;     /* of all connections, from which its nonce follows */
    struct message_hello hello;
};

/* A node that was welcomed; its ticket is its index + 1. */
struct leader_node {
    uint8_t id[MESSAGE_ID_BYTES];
    uint32_t newest;     /* number of the newest connection over which it sent NODE; 0: none */
    int link;            /* its index; -1: it has ended */
    int64_t beat;        /* of its last NODE */
    int64_t sent, knows; /* version of the newest STATE sent to it, and of the newest that it knows */
    int64_t behind_ms;   /* since when it knows no more, and less than it was sent; 0: it knows all */
};

struct leader {
    struct leader_config config;
    struct quorum quorum;
    struct leader_link *links; /* [n_links], with free places */
    struct leader_node *nodes; /* [n_nodes] */
    int n_links, room_links, n_nodes, room_nodes;
    int open;
    uint64_t serials;   /* connections so far */
    int64_t due_ms;     /* when the next decision is due; 0: not known yet */
    int next;           /* the link with which leader_act goes on */
    struct steps steps; /* of the whole run; window 0: none yet */
};

struct leader_action {
    enum { LEADER_SEND, LEADER_CLOSE } kind;
    int link;
    struct message message; /* of LEADER_SEND */
};

void leader_init(struct leader *l, const struct leader_config *c, int64_t now_ms);
void leader_release(struct leader *l);

/* True: no valid ANSWER has arrived over the connection and it was not refused. The caller may displace it for a new
 * one (leader_displace, then LEADER_CLOSE). *spoke: a HELLO arrived. *came_ms: when it was opened. */
bool leader_stranger(const struct leader *l, int link, bool *spoke, int64_t *came_ms);
void leader_displace(struct leader *l, int link);

/* A connection was accepted: its number for the calls below, which leader_closed or LEADER_CLOSE ends. A connection too many is
 * refused by the next leader_act. */
int leader_opened(struct leader *l, bool local, int64_t now_ms);
/* A message came over it; false: the message does not belong there. leader_heard has freed the link: close the socket
 * and do not call leader_closed. */
bool leader_heard(struct leader *l, int link, const struct message *m, int64_t now_ms);
void leader_closed(struct leader *l, int link, enum link_end how, int64_t now_ms);
/* Whether the connection takes no more bytes at present. It then is sent nothing. */
void leader_blocked(struct leader *l, int link, bool blocked);
/* The longest frame that the connection may send now. */
size_t leader_frame_max(const struct leader *l, int link);

/* Decide by what has been heard. */
void leader_decide(struct leader *l, int64_t now_ms);
/* The next thing to do; false: nothing more. The link of LEADER_CLOSE is free afterwards. */
bool leader_act(struct leader *l, struct leader_action *a);
int64_t leader_next_ms(const struct leader *l, int64_t now_ms);

#endif
