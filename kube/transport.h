/* transport.h - the seam between those who talk to the API server and the network. http.h is the real
 * one.
 *
 * Ownership: everything in a request is borrowed for the call of `start` only. A call belongs to the
 *            transport; it ends with exactly one `done`, or with `cancel` and then none. Bytes given to
 *            callbacks are borrowed.
 * Errors:    a request that got no whole answer ends with an err: ERR_TIMEOUT, or ERR_TRANSIENT for all
 *            else (connection, TLS). An HTTP error is an answer; see status.h. So is one that is longer than its limit: its
 *            first bytes, with `cut`.
 * Order:     callbacks come from the loop, never from inside `start` or `cancel`; any of them may start
 *            or cancel calls. After `done` the call is gone.
 */
#ifndef TK_KUBE_TRANSPORT_H
#define TK_KUBE_TRANSPORT_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sv.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KUBE_TRANSPORT_TIMEOUT_MS = 30000,         /* an ordinary request */
    KUBE_TRANSPORT_BODY_MAX_BYTES = 4 << 20,   /* an ordinary answer: etcd holds 1.5 MiB per object */
    KUBE_TRANSPORT_ERROR_MAX_BYTES = 64 << 10, /* the body of an HTTP error on a stream */
};

/* Asked before a request takes a connection and again when its first byte is about to leave: either may be long after it
 * was started. Asks a clock at most, and starts nothing. */
struct kube_transport_gate {
    bool (*is_open)(void *ctx);
    void *ctx;
};

struct kube_http_request {
    const char *method;
    const char *path;         /* begins with '/', percent-encoded, query included */
    const char *content_type; /* NULL without a body */
    struct sv body;
    const char *ns;     /* whose it is: namespaces take turns. NULL: nobody's, which counts as one of them */
    int64_t timeout_ms; /* for the whole exchange; 0: none, for watches */
    int64_t idle_timeout_ms; /* without a byte for so long it ends with ERR_TIMEOUT; 0: none */
    size_t body_max_bytes;   /* of a collected answer, which is cut there; 0: KUBE_TRANSPORT_BODY_MAX_BYTES */
    bool own_connection;     /* for watches: not one of the pool */
    bool urgent;             /* waits for no place and no rate limit */
    bool later;              /* behind all that are not, unless it has waited for 5 s */
    /* Closed when its turn comes: it is not sent and ends with ERR_TRANSIENT. NULL: none. Lives as long as the
     * transport. */
    const struct kube_transport_gate *gate;
};

struct kube_http_response {
    int status;
    int64_t retry_after_ms; /* -1: the header was not there */
    struct sv body;         /* empty when it was given out in chunks */
    bool cut;               /* the answer was longer than body_max_bytes: these are its first bytes */
};

struct kube_http_handler {
    void *ctx;
    /* With it, a 2xx body is given out as it comes. NULL: it is collected. */
    void (*chunk)(void *ctx, struct sv bytes);
    /* Exactly one of r and err is not NULL. */
    void (*done)(void *ctx, const struct kube_http_response *r, const struct err *err);
};

struct kube_http_call;

struct kube_transport {
    struct kube_http_call *(*start)(void *ctx, const struct kube_http_request *req,
                                    const struct kube_http_handler *handler, struct err *err);
    void (*cancel)(void *ctx, struct kube_http_call *call);
    void *ctx;
    bool (*is_full)(void *ctx, const char *ns); /* NULL: never */
};

static inline struct kube_http_call *kube_transport_start(const struct kube_transport *t,
                                                          const struct kube_http_request *req,
                                                          const struct kube_http_handler *handler,
                                                          struct err *err)
{
    return t->start(t->ctx, req, handler, err);
}

static inline void kube_transport_cancel(const struct kube_transport *t, struct kube_http_call *call)
{
    t->cancel(t->ctx, call);
}

/* One more request of this namespace would wait for others of it that are out. What nobody waits for had better come later. */
static inline bool kube_transport_is_full(const struct kube_transport *t, const char *ns)
{
    return t->is_full && t->is_full(t->ctx, ns);
}

#endif
