/* call.h - one HTTP exchange over libcurl, from its easy handle to its handler. Used by http.c only.
 *
 * Ownership: made by call_new, freed by call_free; after its end it frees itself.
 * Order:     libcurl's callbacks only gather bytes; the handler is called from a task of the loop. `ended` comes
 *            just before the handler's `done`, while the call still is there.
 */
#ifndef TK_KUBE_CALL_H
#define TK_KUBE_CALL_H

#include "common/buf.h"
#include "kube/endpoint.h"
#include "kube/fairqueue.h"
#include "kube/loop.h"
#include "kube/transport.h"

struct kube_http_call {
    /* for the pool that it belongs to */
    void (*ended)(void *pool, struct kube_http_call *c, int status);   /* status 0: no answer */
    bool (*refused)(void *pool, struct kube_http_call *c, int status); /* true: call_again; asked once */
    void *pool;
    struct kube_http_call *next, **prev;
    struct fairqueue_item turn;
    uint64_t serial;     /* which credential it left with */
    uint64_t generation; /* and which state of the configuration */
    bool own_connection, urgent;
    int64_t launched_ms;
    char method[8];

    /* its own */
    struct kube_loop *loop;
    const struct endpoint *endpoint;
    struct kube_http_handler handler;
    const struct kube_transport_gate *gate;
    CURL *easy;
    struct curl_slist *headers;
    struct kube_loop_transfer transfer;
    struct kube_loop_task deliver;
    struct kube_loop_timer idle;
    struct buf body; /* collected, or not yet delivered */
    char *content_type;
    struct err refusal; /* it never left; ERR_NONE: it did */
    char shown[100];    /* the path without its query, for errors */
    char curl_error[CURL_ERROR_SIZE];
    int64_t idle_timeout_ms, last_byte_ms;
    bool running;
    bool in_chunks; /* a 2xx answer to a handler with chunk */
    bool paused;
    bool finished, again;
    bool idled, over, shut;
    bool *gone; /* while the handler runs: told when the call is freed from there */
    int curl_code;
    size_t body_max_bytes;
};

struct kube_http_call *call_new(struct kube_loop *l, const struct endpoint *e,
                                const struct kube_http_request *req, const struct kube_http_handler *handler,
                                struct err *err) MUST_CHECK;
/* It takes a kept connection only if that was used in the last idle_max_s seconds (at least 1). */
void call_launch(struct kube_http_call *c, int64_t idle_max_s);
/* Once more, as if nothing had happened: for a request that the server did not look at. */
void call_again(struct kube_http_call *c, int64_t idle_max_s);
void call_refuse(struct kube_http_call *c,
                 const struct err *why); /* instead of call_launch: ends with this error */
void call_free(struct kube_http_call *c);

#endif
