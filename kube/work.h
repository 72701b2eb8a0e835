/* work.h - one key being worked on: read caches, compare, then end it, by a request or without.
 *
 * Ownership: a work is gone once it was ended, and with it what was attached. It borrows what struct kube_works names.
 * Units:     monotonic milliseconds.
 * Order:     each is ended exactly once, from inside `reconcile` or later; not after kube_works_free.
 */
#ifndef TK_KUBE_WORK_H
#define TK_KUBE_WORK_H

#include "kube/client.h"
#include "kube/loop.h"
#include "kube/workqueue.h"

struct kube_work;

const char *kube_work_key(const struct kube_work *w); /* its name, and its namespace */
const char *kube_work_ns(const struct kube_work *w);

/* Memory that goes with the work, however it ends. Once per work. */
void kube_work_attach(struct kube_work *w, void *data, void (*free_data)(void *data));
void *kube_work_data(const struct kube_work *w);

void kube_work_done(struct kube_work *w); /* all is as it should be; earlier failures are forgotten */
void kube_work_after(struct kube_work *w,
                     int64_t delay_ms); /* as kube_work_done, and come again after so long */
void kube_work_retry(struct kube_work *w,
                     int64_t retry_after_ms); /* it failed: again after its back-off, and no sooner */

/* One request for this key. `done` gets the answer, also when the request could not be sent, and goes on with the
 * work or ends it. NULL: success is kube_work_done, failure is told (but for a conflict, which only means "look again")
 * and is kube_work_retry. One at a time. */
void kube_work_send(struct kube_work *w, const struct kube_request *request,
                    void (*done)(void *ctx, struct kube_work *w, struct kube_reply *reply));

/* Bring an object to what the body says, whether it is there or not: a JSON merge patch of `name`, and when that is not found, a
 * create with the same body (whose metadata.name must be `name`). verb and subresource of the request do not count; its resource and
 * its strings, but for the body, live as long as the work. `done` as
 * in kube_work_send; a create that somebody else was faster with ends in ERR_CONFLICT. */
void kube_work_apply(struct kube_work *w, const struct kube_request *request,
                     void (*done)(void *ctx, struct kube_work *w, struct kube_reply *reply));

/* ---- for whoever takes the keys from the queue */

/* Those under way. */
struct kube_works {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct workqueue *queue;
    void *ctx; /* of `problem`, and of the answers to kube_work_send */
    void (*problem)(void *ctx, const char *key, const struct err *err);
    void (*ended)(void *owner); /* one is gone, and the queue knows */
    void *owner;
    struct kube_work *first;
    int n;
};

struct kube_work *kube_works_begin(struct kube_works *ws,
                                   struct workqueue_key key); /* one that workqueue_take gave */
void kube_works_free(struct kube_works *ws);                  /* all of them, without telling */

#endif
