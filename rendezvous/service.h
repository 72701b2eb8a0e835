/* service.h - a listening TCP socket: a thread that serves it until it is stopped, and the limit on unauthenticated
 * connections. Its users handle the connections.
 *
 * Ownership: service_open fills *s, service_close releases what it holds, also after a failed service_open.
 * Threads:   open, start, stop and close are for the owner; poll and accept for the thread of the service.
 */
#ifndef TK_RENDEZVOUS_SERVICE_H
#define TK_RENDEZVOUS_SERVICE_H

#include "common/cleanup.h"
#include "common/err.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct service {
    pthread_t thread;
    int listener;
    int stop; /* an eventfd that ends the thread; -1: not started */
    int port;
    int64_t shut_until_ms; /* monotonic: no connection is accepted until then; 0: accept */
};

/* Listen on all addresses at `port`; 0: one that the kernel chooses. Errors as in net_listen. */
int service_open(struct service *s, int port, struct err *err) MUST_CHECK;

/* Start the thread, with all signals blocked, so that they go to the process's own. */
int service_start(struct service *s, void *(*run)(void *arg), void *arg, struct err *err) MUST_CHECK;

/* poll: pfds[0] and pfds[1] belong to the service, `n` connections follow. Waits until `until_ms` (monotonic) at the
 * longest. Returns 1: the service is to be stopped; 0: connections may be ready, and service_ready returns whether
 * the listener is ready. A lack of memory ends the process. */
int service_poll(struct service *s, struct pollfd *pfds, int n, int64_t until_ms);

/* Whether a connection waits to be accepted, after service_poll. */
bool service_ready(const struct pollfd *pfds);

/* The listener, or -1 while no connection is accepted: for a user without a thread, which polls by itself. */
int service_listener(struct service *s);

/* The places of a service's connections, numbered from 0, and who has them. */
struct service_guest {
    bool spoke;          /* it has said what a friend says first; who has not gives way sooner */
    int64_t came_ms;     /* monotonic */
    const uint8_t *addr; /* [16] where it comes from */
};
struct service_crowd {
    int places;
    /* Whether the one at place `at` may be given up for a new one: mostly who has not identified itself. */
    bool (*look)(const void *arg, int at, struct service_guest *g);
    const void *arg;
    int max, each;       /* how many of those there may be, and from one address; each 0: as many */
    int64_t patience_ms; /* then the oldest, or the oldest from that address, gives way once it is so old */
};

/* Accept a connection: its descriptor, and where it comes from; or -1: not now. *gives_way: the place of the one that the caller
 * closes for it; -1: none. At `max` connections wait in the accept queue until the oldest gives way. From an address that has `each`
 * they are reset at once, so that they keep no other waiting. While the process lacks descriptors or memory, connections stay in the
 * accept queue, and the next try is 100 ms later. */
int service_admit(struct service *s, const struct service_crowd *c, uint8_t addr[static 16], int *gives_way);

/* End the thread and wait for it; only after service_start. */
void service_stop(struct service *s);
void service_close(struct service *s);

#endif
