/* work.h - one key being worked on: read caches, compare, then end it, by a request or without.
 *
 * Ownership: a work is gone once it was ended, and with it what was attached. It borrows what struct works names.
 * Units:     monotonic milliseconds.
 * Order:     each is ended exactly once, from inside `reconcile` or later; not after works_free.
 */
#ifndef TK_KUBE_WORK_H
#define TK_KUBE_WORK_H

#include "kube/client.h"
#include "kube/loop.h"
#include "kube/workqueue.h"

struct work;

const char *work_key(const struct work *w); /* its name, and its namespace */
const char *work_ns(const struct work *w);

/* Memory that goes with the work, however it ends. Once per work. */
void work_attach(struct work *w, void *data, void (*free_data)(void *data));
void *work_data(const struct work *w);

void work_done(struct work *w); /* all is as it should be; earlier failures are forgotten */
void work_after(struct work *w, int64_t delay_ms); /* as work_done, and come again after so long */
void work_retry(struct work *w,
                int64_t retry_after_ms); /* it failed: again after its back-off, and no sooner */

/* One request for this key. `done` gets the answer, also when the request could not be sent, and goes on with the
 * work or ends it. NULL: success is work_done, failure is told (but for a conflict, which only means "look again")
 * and is work_retry. One at a time. */
void work_send(struct work *w, const struct kube_request *request,
               void (*done)(void *ctx, struct work *w, struct kube_reply *reply));

/* ---- for whoever takes the keys from the queue */

/* Those under way. */
struct works {
    struct loop *loop;
    const struct transport *transport;
    struct workqueue *queue;
    void *ctx; /* of `problem`, and of the answers to work_send */
    void (*problem)(void *ctx, const char *key, const struct err *err);
    void (*ended)(void *owner); /* one is gone, and the queue knows */
    void *owner;
    struct work *first;
    int n;
};

struct work *works_begin(struct works *ws, struct workqueue_key key); /* one that workqueue_take gave */
void works_free(struct works *ws);                                    /* all of them, without telling */

#endif
