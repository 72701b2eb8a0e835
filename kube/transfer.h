/* transfer.h - one HTTP exchange over libcurl, from its easy handle to its handler. Used by http.c only.
 *
 * Ownership: a transfer frees itself at its end; transfer_free cancels and frees it before that.
 * Order:     libcurl's callbacks only collect bytes; the handler is called from a task of the loop. At the
 *            end `ended` is called while the transfer still exists, then the transfer is freed, then the
 *            handler's `done` is called.
 */
#ifndef TK_KUBE_TRANSFER_H
#define TK_KUBE_TRANSFER_H

#include "common/buf.h"
#include "kube/endpoint.h"
#include "kube/fairqueue.h"
#include "kube/loop.h"
#include "kube/transport.h"

struct kube_transfer {
    /* Set by the pool (http.c). */
    void (*ended)(void *pool, struct kube_transfer *c, int status); /* status 0: no answer */
    bool (*refused)(void *pool, struct kube_transfer *c,
                    int status); /* true: it used transfer_again; only once */
    void *pool;
    struct kube_transfer *next, **prev;
    struct fairqueue_item turn;
    uint64_t generation; /* config->generation when it was sent */
    bool own_connection, urgent;
    int64_t launched_ms;
    char method[8];

    /* Internal to transfer.c. */
    struct kube_loop *loop;
    const struct endpoint *endpoint;
    struct kube_http_handler handler;
    const struct kube_transport_gate *gate;
    CURL *easy;
    struct curl_slist *headers;
    struct kube_loop_transfer transfer;
    struct kube_loop_task deliver;
    struct kube_loop_timer idle;
    struct buf body; /* received and not yet delivered */
    char *content_type;
    struct err failure; /* why there is no complete answer; ERR_NONE: no failure so far */
    char shown[100];    /* the path without its query, for messages */
    char curl_error[CURL_ERROR_SIZE];
    int64_t idle_timeout_ms, last_byte_ms;
    bool running;
    bool in_chunks; /* a 2xx answer to a handler with chunk */
    bool paused;
    bool held; /* see transport.h */
    bool finished;
    bool over;   /* the answer is longer than its limit */
    bool no_tls; /* the failure is one of TLS, before anything was sent */
    bool again;  /* see transfer_again */
    bool *gone;  /* NULL, or set to true when the handler frees the transfer */
    size_t body_max_bytes;
};

struct kube_transfer *transfer_new(struct kube_loop *l, const struct endpoint *e,
                                   const struct kube_http_request *req,
                                   const struct kube_http_handler *handler, struct err *err) MUST_CHECK;
/* Send it. Reuse a connection only if it was used in the last idle_max_s seconds (at least 1). */
void transfer_launch(struct kube_transfer *c, int64_t idle_max_s);
/* Send it again from the beginning, after the server refused it without processing it (401, TLS). */
void transfer_again(struct kube_transfer *c, int64_t idle_max_s);
void transfer_hold(struct kube_transfer *c, bool held);
void transfer_free(struct kube_transfer *c);

#endif
