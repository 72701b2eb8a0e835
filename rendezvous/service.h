/* service.h - a listening TCP socket with a thread that serves it, and limits on unauthenticated connections. The
 * leader, the watch, the links between pods and the progress server use it; each handles its own connections.
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

/* Call poll: pfds[0] and pfds[1] belong to the service, `n` connections follow. Waits until `until_ms` (monotonic) at
 * the longest. Returns 1: the service is to be stopped; 0: connections may be ready, and service_ready returns
 * whether the listener is ready. A lack of memory ends the process. */
int service_poll(struct service *s, struct pollfd *pfds, int n, int64_t until_ms);

/* Whether a connection waits to be accepted, after service_poll. */
bool service_ready(const struct pollfd *pfds);

/* The listener, or -1 while no connection is accepted: for a caller that polls without the service's thread. */
int service_listener(struct service *s);

/* A connection of a service, as service_limits.get describes it. */
struct service_conn {
    bool greeted;        /* it has sent a plausible first message; one that has not is evicted first */
    int64_t came_ms;     /* monotonic */
    const uint8_t *addr; /* [16] the peer's */
};
struct service_limits {
    int n; /* slots of connections, numbered from 0 */
    /* Describe the connection in slot `at`. False: the slot is free, or its connection is authenticated and must stay. */
    bool (*get)(const void *arg, int at, struct service_conn *g);
    const void *arg;
    int max;              /* unauthenticated connections at a time */
    int per_address;      /* of these from one address; 0: no limit per address */
    int64_t evict_age_ms; /* at a limit the oldest one is evicted, but only when it is this old */
};

/* Accept a connection. Returns its descriptor and the peer's address, or -1: none now. *evicted: the slot of the
 * connection that the caller has to close in exchange; -1: none. At `max`, new connections wait in the accept queue
 * until the oldest one may be evicted. A connection from an address that is at `per_address` is reset at once, so
 * that it does not delay other addresses. While the process lacks descriptors or memory, connections stay in the
 * accept queue, and the next try is 100 ms later. */
int service_accept(struct service *s, const struct service_limits *c, uint8_t addr[static 16], int *evicted);

/* End the thread and wait for it; only after service_start. */
void service_stop(struct service *s);
void service_close(struct service *s);

#endif
