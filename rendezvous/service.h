/* service.h - a thread that serves a listening TCP socket until it is stopped: the frame of the store's server and of
 * the collectives' watch, which handle the connections.
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
    int stop; /* an eventfd that ends the thread */
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

/* Accept no connection before `until_ms`. */
void service_shut(struct service *s, int64_t until_ms);

/* Accept a connection: its descriptor, or -1. While the process lacks descriptors or memory, connections stay in the
 * accept queue, and the next try is 100 ms later. */
int service_accept(struct service *s);

/* End the thread and wait for it; only after service_start. */
void service_stop(struct service *s);
void service_close(struct service *s);

#endif
