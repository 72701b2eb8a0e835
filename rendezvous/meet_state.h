/* meet_state.h - struct meet, which the files meet*.c share. No other file includes it.
 *
 * Threads: all but `thread` and `fd` is accessed with the lock held.
 */
#ifndef TK_RENDEZVOUS_MEET_STATE_H
#define TK_RENDEZVOUS_MEET_STATE_H

#include "common/arena.h"
#include "host/resolve.h"
#include "rendezvous/meet.h"
#include "rendezvous/service.h"
#include "rendezvous/stranger.h"

#include <poll.h>
#include <pthread.h>

/* A connection's socket. */
struct wire {
    int fd;
    uint8_t addr[16]; /* with `leaders`: where it comes from */
    bool connects;    /* it is not connected yet */
    bool leaders;     /* of the leader here: `link` says which; else of the node: `number`, 0: meet_probe's */
    int link;
    uint32_t number;
    int64_t late_ms;  /* closed then, whatever comes; 0: no */
    int64_t close_ms; /* to be closed when all is sent, at this time at the latest; 0: no */
    struct buf in, out;
};

struct meet {
    pthread_mutex_t lock;
    pthread_cond_t ended; /* of `thread_ended` */
    pthread_t thread;
    int refs; /* the owner's and the thread's */
    bool stop, thread_ended;
    int fd, wake; /* eventfds: for the owner, for the thread */
    int64_t grace_ms;
    struct meet_config config;
    struct arena strings; /* its own, of `config` */
    struct node node;
    struct leader leader;
    bool leads;
    struct service service; /* with `leads`: its listener */
    int local_link;         /* with `leads`: the node's own connection; -1: none */
    uint32_t local_number;
    struct wire **wires;
    int n_wires, room_wires;
    struct resolver *at;
    struct addrinfo *found;              /* the addresses of `host` */
    int tries;                           /* which of them is next */
    struct sockaddr_storage leader_addr; /* of the last leader that welcomed this node */
    socklen_t leader_len;
    uint32_t pending;  /* number of a connection that waits for a name; 0: none */
    bool unresolved;   /* the last try failed for its name */
    int64_t probe_ms;  /* when to ask who leads at `host`; 0: no more */
    int probes;        /* how often that was tried */
    struct err broken; /* why this node cannot take part */
    enum stranger stranger;
    int64_t stranger_ms; /* when to ask again who serves there */
    bool asks;           /* now, without the lock */
    char stranger_text[STRANGER_BYTES];
    struct { /* of the view, when the owner was woken last */
        int64_t version;
        enum node_stage stage;
        bool stops;
        char why[160];
    } told;
    struct meeting_state incoming;
    struct message message;
};

/* meet_wires.c: sockets. */
struct wire *meet_add_wire(struct meet *m, int fd);
void meet_accept(struct meet *m, int64_t now_ms);
void meet_send(struct meet *m, struct wire *w, const struct message *message, int64_t now_ms);
void meet_close_wire(struct meet *m, struct wire *w, int64_t now_ms);
struct wire *meet_wire_of_node(struct meet *m, uint32_t number);
struct wire *meet_wire_of_leader(struct meet *m, int link);
int meet_poll_wires(const struct meet *m, struct pollfd *pfds);
/* After poll: hand over what came, send what is due. */
void meet_turn_wires(struct meet *m, const struct pollfd *pfds, int n, int64_t now_ms);
void meet_release_wires(struct meet *m);

/* meet_reach.c: who hosts, names, dials. */
int meet_host(struct meet *m, int64_t now_ms, struct err *err);
void meet_dial(struct meet *m, uint32_t number, int64_t now_ms);
/* A dial that waited for a name. */
void meet_go_on(struct meet *m, int64_t now_ms);
void meet_keep_address(struct meet *m, int fd);
/* A node configured as host queries the endpoint once for another leader: two nodes configured so would each lead a
 * run of their own. */
void meet_probe(struct meet *m, int64_t now_ms);
void meet_greet_probed(struct meet *m, struct wire *w, int64_t now_ms);
void meet_probed(struct meet *m);
/* A launcher has answered at the address: for some time nobody asks who serves there. */
void meet_met_launcher(struct meet *m, int64_t now_ms);
/* Without the lock held: ask who serves at the address, if that is due. */
void meet_ask_stranger(struct meet *m);

#endif
