/* http.h - requests to one API server over libcurl: the real transport.
 *
 * Ownership: borrows the loop and the configuration; http_free cancels what is under way without a
 *            `done`.
 * Errors:    those of transport.h. TLS >= 1.2 and always verified unless the configuration says
 *            otherwise; no redirects; plain http only to a loopback address, for tests and proxies on
 *            the same machine.
 * Order:     ordinary calls take turns by namespace, first come first served inside one, as fairqueue.h says: 8 at a time,
 *            2 more for namespaces that have none out. A write that is out for over 1 s gives its place up, 4 of a namespace
 *            and 64 in all. So a slow namespace has 8 out, and holds up nobody else. Those marked `later` go behind.
 *            Watches and urgent calls go at once. Connections are kept. After a call that got no answer no connection is
 *            used again that was idle meanwhile.
 */
#ifndef TK_KUBE_HTTP_H
#define TK_KUBE_HTTP_H

#include "kube/auth/config.h"
#include "kube/loop.h"
#include "kube/transport.h"

enum {
    HTTP_PLACES = 8,
    HTTP_RESERVED = 2,
    HTTP_SLOW_MS = 1000,
    HTTP_SLOW_SHARE_MAX = 4,
    HTTP_SLOW_MAX = 64,
    HTTP_LATER_MS = 5000,
};

struct http;

struct http_options {
    const char *user_agent; /* "ptj-operator/0.1.0" */
    double qps;             /* requests per second on average; 0: no limit. Streams do not count */
    int burst;              /* requests at once under a limit; at least 1 */
    int hurry; /* tests of what vanishes: all timeouts, TCP's too, so many times sooner; 0: as they are */
};

/* How many answers of a kind came: the rows of rest_client_requests_total. */
struct http_count {
    char method[8];
    int status; /* 0: no answer */
    uint64_t n;
};

struct http *http_new(struct kube_loop *l, struct kube_config *config, const struct http_options *options,
                      struct err *err) MUST_CHECK;
void http_free(struct http *h);

struct kube_transport http_transport(struct http *h);

/* Rows in no order; the array is valid until the next turn of the loop. */
const struct http_count *http_counts(const struct http *h, size_t *ret_n);

static inline void http_freep(struct http **h)
{
    http_free(*h);
}
#define cleanup_http __attribute__((cleanup(http_freep)))

#endif
