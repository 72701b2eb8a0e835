/* meet_state.h - struct meet, which only the files meet*.c use: a node's part in a rendezvous, its connections and,
 * on one node, the leader.
 *
 * Threads: all is accessed with the lock held, except thread, fd, wake and at, which do not change after meet_start.
 * Units:   milliseconds of meet_now.
 */
#ifndef TK_RENDEZVOUS_MEET_STATE_H
#define TK_RENDEZVOUS_MEET_STATE_H

#include "common/arena.h"
#include "host/resolve.h"
#include "rendezvous/awake.h"
#include "rendezvous/foreign.h"
#include "rendezvous/meet.h"
#include "rendezvous/service.h"

#include <poll.h>
#include <pthread.h>

/* A connection: its socket and its buffers. */
struct wire {
    int fd;
    uint8_t addr[16]; /* with `leaders`: the peer's */
    bool connects;    /* connect is in progress */
    bool leaders;     /* true: the leader's connection `link`; false: the node's connection `number` */
    int link;         /* as leader.h counts */
    uint32_t number;  /* as node.h counts; 0: the connection of meet_probe */
    int64_t late_ms;  /* of meet_probe's: deadline to close it; 0: none */
    int64_t close_ms; /* close it when `out` is sent, at this time at the latest; 0: keep it open */
    struct buf in, out;
};

struct meet {
    pthread_mutex_t lock;
    pthread_cond_t ended; /* signals `thread_ended` */
    pthread_t thread;
    int refs; /* the owner's and the thread's */
    bool stop, thread_ended;
    int fd, wake; /* eventfds: for the owner, for the thread */
    struct awake awake;
    int64_t grace_ms; /* time until which the leader's thread waits for the other nodes */
    struct meet_config config;
    struct arena strings; /* copies of the strings of `config` */
    struct node node;
    struct leader leader;
    bool leads;             /* this node hosts the leader */
    struct service service; /* with `leads`: the listener */
    int local_link;         /* with `leads`: link of the node in this process; -1: none */
    uint32_t local_number;
    struct wire **wires;
    int n_wires, room_wires;
    struct resolver *at;
    struct addrinfo *found;              /* the addresses of `host` */
    const struct addrinfo *next;         /* the next one to dial */
    struct sockaddr_storage leader_addr; /* of the last leader that welcomed this node */
    socklen_t leader_len;
    uint32_t pending;  /* number of the connection that waits for the resolver; 0: none */
    bool unresolved;   /* the last attempt failed to resolve `host` */
    int64_t probe_ms;  /* when to query `host` for another leader; 0: done */
    int probes;        /* how often the name did not resolve for meet_probe */
    struct err broken; /* why this node cannot take part */
    enum foreign foreign;
    int64_t foreign_ms; /* when to identify the server again */
    char foreign_text[FOREIGN_BYTES];
    struct { /* the parts of the view that the owner was woken for last */
        int64_t version;
        enum node_stage stage;
        bool stops;
        char why[160];
    } notified;
    struct meeting_state incoming;
    struct message message;
};

/* The time for node.h and leader.h (awake.h). */
int64_t meet_now(const struct meet *m);

/* meet_wires.c: sockets. */
/* Takes ownership of fd; never NULL. */
struct wire *meet_add_wire(struct meet *m, int fd);
/* Accept at most one connection, and close another one if there are too many. */
void meet_accept(struct meet *m, int64_t now_ms);
/* w may be NULL. A message that does not fit is dropped. */
void meet_send(struct meet *m, struct wire *w, const struct message *message, int64_t now_ms);
/* Send what is queued, for 1 s at most, then close. Neither the node nor the leader is informed. */
void meet_close_wire(struct meet *m, struct wire *w, int64_t now_ms);
struct wire *meet_wire_of_node(struct meet *m, uint32_t number);
struct wire *meet_wire_of_leader(struct meet *m, int link);
int meet_poll_wires(const struct meet *m, struct pollfd *pfds);
/* After poll: read and pass on messages, send what is queued. */
void meet_turn_wires(struct meet *m, const struct pollfd *pfds, int n, int64_t now_ms);
void meet_release_wires(struct meet *m);

/* meet_reach.c: host the leader, resolve names, connect. */
void meet_dial(struct meet *m, uint32_t number, int64_t now_ms);
/* Continue a dial that waited for the resolver. */
void meet_go_on(struct meet *m, int64_t now_ms);
void meet_keep_address(struct meet *m, int fd);
/* A node configured as host queries the endpoint once for another leader: two nodes configured so would each lead a
 * run of their own. */
void meet_probe(struct meet *m, int64_t now_ms);
void meet_greet_probed(struct meet *m, struct wire *w, int64_t now_ms);
/* Act on the probe's answer in m->message: another leader with the same key sets `broken`. */
void meet_probed(struct meet *m);
/* A launcher has answered at the address: do not identify the server for FOREIGN_AGAIN_MS. */
void meet_met_launcher(struct meet *m, int64_t now_ms);
/* Without the lock held: identify the server at the address, if that is due. */
void meet_identify_foreign(struct meet *m);

#endif
