/* work.h - the reconcile of one key: send requests for it, then end it as done, done for now, or failed.
 *
 * Ownership: ending a work frees it and the memory attached to it. It borrows the members of struct
 *            kube_works.
 * Units:     monotonic milliseconds.
 * Order:     `reconcile` or a later callback ends each work exactly once, before kube_works_free.
 */
#ifndef TK_KUBE_WORK_H
#define TK_KUBE_WORK_H

#include "kube/client.h"
#include "kube/loop.h"
#include "kube/workqueue.h"

struct kube_work;

const char *kube_work_key(const struct kube_work *w); /* the key's name */
const char *kube_work_ns(const struct kube_work *w);

/* Attach memory that is freed with the work, however that ends. Once per work. */
void kube_work_attach(struct kube_work *w, void *data, void (*free_data)(void *data));

void kube_work_done(struct kube_work *w); /* success: earlier failures are forgotten */
void kube_work_after(struct kube_work *w,
                     int64_t delay_ms); /* as kube_work_done, and queue the key again after delay_ms */
void kube_work_retry(
    struct kube_work *w,
    int64_t retry_after_ms); /* failure: queue the key again after its back-off, no sooner than this */

/* Send one request for this key, one at a time. `done` gets the answer, also when the request could not be
 * sent, and continues the work or ends it. NULL: success is kube_work_done, failure is kube_work_retry;
 * failures other than conflicts are passed to `problem`. */
void kube_work_send(struct kube_work *w, const struct kube_request *request,
                    void (*done)(void *ctx, struct kube_work *w, struct kube_reply *reply));

/* ---- for reconciler.c */

/* The works in progress. */
struct kube_works {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct workqueue *queue;
    void *ctx; /* for `problem` and the answers to kube_work_send */
    void (*problem)(void *ctx, const char *key, const struct err *err);
    void (*ended)(void *owner); /* a work was ended and freed, after workqueue_done */
    void *owner;
    struct kube_work *first;
    int n;
};

struct kube_work *kube_works_begin(struct kube_works *ws,
                                   struct workqueue_key key); /* key: from workqueue_take */
void kube_works_free(struct kube_works *ws);                  /* frees all, without callbacks */

#endif
