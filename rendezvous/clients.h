/* clients.h - the server's clients: what each has said, waits for, and is owed. Used by the server's thread only.
 *
 * Order: a client has one request at work at a time; its next one is read when the answer has gone out. So each needs
 *        one request's and one answer's bytes and no more.
 */
#ifndef TK_RENDEZVOUS_CLIENTS_H
#define TK_RENDEZVOUS_CLIENTS_H

#include "rendezvous/table.h"

#include <poll.h>
#include <stdatomic.h>

struct client {
    int fd;
    bool admitted;
    bool waiting; /* the request in `in` waits for a key */
    int64_t came_ms;
    int64_t deadline_ms; /* of the wait, or of the message begun; 0: none */
    bool silent;         /* gone because nothing was heard: its process may be well, so its will is void */
    struct buf in, out, will;
};

struct clients {
    struct table table;
    struct client **list; /* [n] */
    int n, max;
    int n_unknown; /* not admitted yet */
    int64_t speak_ms;
    _Atomic uint32_t unauthenticated; /* went without having been admitted; any thread may look */
    char hello[PROTOCOL_HELLO_BYTES];
};

void clients_init(struct clients *s, const char *run_id, int max, int64_t speak_ms);
void clients_release(struct clients *s);

/* How long one more has to wait outside: while many have just come and not said who they are. 0: it may come in. */
int64_t clients_crowded_ms(const struct clients *s);

/* False when there are too many; the caller keeps the descriptor. */
bool clients_add(struct clients *s, int fd);

/* Tell one that there is no room. */
void clients_turn_away(int fd);

/* Fill one pollfd per client; returns how many. */
int clients_poll(const struct clients *s, struct pollfd *pfds);
int clients_wait_ms(const struct clients *s);
void clients_turn(struct clients *s, const struct pollfd *pfds, int n);

#endif
