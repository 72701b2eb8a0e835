/* service.h - a listening TCP socket: a thread that serves it until it is stopped, and the rule by which connections of
 * strangers are bounded. Its users handle the connections.
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
 * longest. Returns 1: the service is to be stopped; 0: connections may be ready; a listener that is ready is told by
 * service_ready. A lack of memory ends the process. */
int service_poll(struct service *s, struct pollfd *pfds, int n, int64_t until_ms);

/* Whether a connection waits to be accepted, after service_poll. */
bool service_ready(const struct pollfd *pfds);

/* The listener, or -1 while no connection is accepted: for a user without a thread, which polls by itself. */
int service_listener(struct service *s);

/* The connections that may be given up for a new one, mostly those that have not identified themselves. */
struct service_crowd {
    int n, max;
    int64_t oldest_ms;   /* when the oldest of them was accepted (monotonic) */
    int64_t patience_ms; /* at `max` of them the oldest is given up for a new one, once it is so old */
};

/* Accept a connection: its descriptor, or -1: not now. *displaced: the caller closes the oldest of the crowd for it. While the
 * process lacks descriptors or memory, connections stay in the accept queue, and the next try is 100 ms later. */
int service_admit(struct service *s, const struct service_crowd *c, bool *displaced);

/* End the thread and wait for it; only after service_start. */
void service_stop(struct service *s);
void service_close(struct service *s);

#endif
