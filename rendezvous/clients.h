/* clients.h - the store server's connections: their requests, waits and answers, for server.c.
 *
 * Ownership: clients_init fills *s, clients_release closes all connections and frees what it holds. clients_add
 *            takes the descriptor over when it succeeds.
 * Order:     a client has one request in progress at a time; its next one is read after the answer has been sent.
 *            So each needs buffers for one request and one answer only.
 * Threads:   the server's thread only; `unauthenticated` may be read by any thread.
 */
#ifndef TK_RENDEZVOUS_CLIENTS_H
#define TK_RENDEZVOUS_CLIENTS_H

#include "rendezvous/table.h"

#include <poll.h>
#include <stdatomic.h>

struct client {
    int fd;
    bool admitted; /* it has sent a hello with this run's id */
    bool waiting;  /* the request in `in` waits for a key */
    int64_t came_ms;
    int64_t deadline_ms; /* of the wait, or of the partial message; 0: none */
    struct buf in, out;
};

struct clients {
    struct table table;
    struct client **list; /* [n] */
    int n, max;
    int n_unknown;                    /* not admitted yet */
    int64_t speak_ms;                 /* see struct store_server_limits */
    _Atomic uint32_t unauthenticated; /* closed without having been admitted */
    char hello[PROTOCOL_HELLO_BYTES];
};

void clients_init(struct clients *s, const char *run_id, int max, int64_t speak_ms);
void clients_release(struct clients *s);

/* How many milliseconds to accept no more connections, because 256 recent ones have not been admitted yet. 0:
 * accept. */
int64_t clients_crowded_ms(const struct clients *s);

/* Add an accepted connection; when 256 are not admitted yet, it displaces the oldest of them. False when the
 * table is full: the caller keeps the descriptor. */
bool clients_add(struct clients *s, int fd);

/* Send STATUS_CROWDED to a connection that found the table full. */
void clients_turn_away(int fd);

/* Fill one pollfd per client; returns how many. */
int clients_poll(const struct clients *s, struct pollfd *pfds);
/* The first deadline, monotonic; INT64_MAX: none. */
int64_t clients_due_ms(const struct clients *s);
/* After poll, with the pfds of clients_poll: read requests, answer them, drop clients that ended or timed out. */
void clients_turn(struct clients *s, const struct pollfd *pfds, int n);

#endif
