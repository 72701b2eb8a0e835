/* transport.h - the interface through which requests go to the API server. http.h implements it; tests
 * replace it.
 *
 * Ownership: `start` copies the request and the handler; only the gate, the handler's ctx and content_type must live on. A
 *            transfer belongs to the transport; it ends with exactly one `done`, or without one by `cancel` or with
 *            the transport. Bytes given to callbacks are borrowed.
 * Errors:    a request without a complete answer ends with an err: ERR_TIMEOUT, or ERR_TRANSIENT for all else
 *            (connection, TLS). An HTTP error is an answer: see apistatus.h. An answer longer than its
 *            limit is one, too: the response has its first bytes, and `cut`. `start` returns NULL with *err when the
 *            request cannot be set up; `done` is then not called.
 * Order:     callbacks are called from the loop, never from inside `start` or `cancel`; each may start and
 *            cancel transfers. After `done` the transfer no longer exists.
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
    KUBE_TRANSPORT_BODY_MAX_BYTES = 4 << 20,   /* an ordinary answer: etcd stores 1.5 MiB per object */
    KUBE_TRANSPORT_ERROR_MAX_BYTES = 64 << 10, /* the body of an HTTP error on a stream */
};

/* Whether a request may be sent. The transport calls it when the request leaves the queue, and again when its
 * first byte is about to be sent: each may be long after `start`. It may read a clock, and must not start
 * anything. */
struct kube_transport_gate {
    bool (*is_open)(void *ctx);
    void *ctx;
};

struct kube_http_request {
    const char *method;
    const char *path;         /* begins with '/', percent-encoded, query included */
    const char *content_type; /* NULL without a body */
    struct sv body;
    /* Namespace of the request: namespaces are served in turn. NULL: none; counts as a namespace of its own. */
    const char *ns;
    int64_t timeout_ms;      /* from when it leaves the queue to the whole answer; 0: none, for watches */
    int64_t idle_timeout_ms; /* ERR_TIMEOUT after this long without a byte, unless held; 0: none */
    size_t body_max_bytes;   /* a collected answer is cut there; 0: KUBE_TRANSPORT_BODY_MAX_BYTES */
    bool own_connection;     /* for watches: a connection outside of the pool */
    bool urgent;             /* bypasses the queue */
    bool later;              /* low priority: behind all others until it has waited for 5 s */
    /* If it is closed, the request is not sent and ends with ERR_TRANSIENT. NULL: no gate. The gate lives as
     * long as the transport. */
    const struct kube_transport_gate *gate;
};

struct kube_http_response {
    int status;
    int64_t retry_after_ms; /* -1: the header was not there */
    struct sv body;         /* empty when it was passed to `chunk` */
    bool cut;               /* the body was longer than its limit: these are its first bytes */
};

struct kube_http_handler {
    void *ctx;
    /* If set, it gets the body of a 2xx answer as it arrives. NULL: the body is collected. */
    void (*chunk)(void *ctx, struct sv bytes);
    /* Exactly one of r and err is not NULL. */
    void (*done)(void *ctx, const struct kube_http_response *r, const struct err *err);
};

struct kube_transfer;

struct kube_transport {
    struct kube_transfer *(*start)(void *ctx, const struct kube_http_request *req,
                                   const struct kube_http_handler *handler, struct err *err);
    void (*cancel)(void *ctx, struct kube_transfer *transfer);
    void *ctx;
    bool (*is_full)(void *ctx, const char *ns); /* NULL: never */
    /* NULL: transfers cannot be held. */
    void (*hold)(void *ctx, struct kube_transfer *transfer, bool held);
};

static inline struct kube_transfer *kube_transport_start(const struct kube_transport *t,
                                                         const struct kube_http_request *req,
                                                         const struct kube_http_handler *handler,
                                                         struct err *err)
{
    return t->start(t->ctx, req, handler, err);
}

static inline void kube_transport_cancel(const struct kube_transport *t, struct kube_transfer *transfer)
{
    t->cancel(t->ctx, transfer);
}

/* While a transfer is held, none of its callbacks is called, and it stops reading from the peer once about 80
 * KiB are pending. `chunk` may hold its own transfer. */
static inline void kube_transport_hold(const struct kube_transport *t, struct kube_transfer *transfer,
                                       bool held)
{
    if (t->hold)
        t->hold(t->ctx, transfer, held);
}

/* Whether one more request of this namespace, which is not NULL, would wait for others in flight. Start a request that can wait
 * only when this is false. */
static inline bool kube_transport_is_full(const struct kube_transport *t, const char *ns)
{
    return t->is_full && t->is_full(t->ctx, ns);
}

#endif
