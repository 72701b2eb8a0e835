/* http.h - the transport (transport.h) to one API server over libcurl: queues requests, limits how many are
 * in flight, reuses connections.
 *
 * TLS 1.2 or later, verified. No redirects. Plain http only to a loopback address, for tests and for proxies
 * on the same machine.
 * Ownership: borrows the loop, the configuration and the user agent; http_free cancels all transfers without a `done`.
 * Errors:    those of transport.h.
 * Order:     the pool serves namespaces in turn, first in first out inside one, by the rules of fairqueue.h:
 *            8 transfers at a time, and 2 more for namespaces that have none in flight. A write in flight for
 *            over 1 s frees its slot, up to 4 writes of a namespace and 64 in all. So a slow namespace has at
 *            most 8 transfers in flight and does not delay the others. Transfers marked `later` come last.
 *            Watches and urgent transfers start immediately. After a transfer without an answer the pool does
 *            not reuse connections that were idle since before that transfer was sent.
 */
#ifndef TK_KUBE_HTTP_H
#define TK_KUBE_HTTP_H

#include "kube/auth/config.h"
#include "kube/loop.h"
#include "kube/transport.h"

enum {
    HTTP_SLOTS = 8,
    HTTP_RESERVED = 2,
    HTTP_SLOW_MS = 1000,
    HTTP_SLOW_SHARE_MAX = 4,
    HTTP_SLOW_MAX = 64,
    HTTP_LATER_MS = 5000,
};

struct http;

/* Number of answers by method and status: the samples of rest_client_requests_total. */
struct http_count {
    char method[8];
    int status; /* 0: no answer */
    uint64_t n;
};

/* user_agent: "ptj-operator/0.1.0". ERR_INVALID: the server's URL cannot be used. */
struct http *http_new(struct kube_loop *l, struct kube_config *config, const char *user_agent,
                      struct err *err) MUST_CHECK;
void http_free(struct http *h);

struct kube_transport http_transport(struct http *h);

/* The rows are unordered. The array is valid until the next turn of the loop. */
const struct http_count *http_counts(const struct http *h, size_t *ret_n);

static inline void http_freep(struct http **h)
{
    http_free(*h);
}
#define cleanup_http __attribute__((cleanup(http_freep)))

#endif
