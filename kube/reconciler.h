/* reconciler.h - the core of a controller: changes of watched objects add keys to a queue, the reconciler
 * calls `reconcile` for each key, and the result decides when the key is queued again.
 *
 *     kube_reconciler_watch -> cache -map-> kube_reconciler_add(key) -> queue -> reconcile(work) -> kube_work_done
 *                                                               ^                         kube_work_after
 *                                                               '------ back-off -------- kube_work_retry
 *
 * Ownership: borrows loop and transport. It owns its caches, the queue and every struct kube_work.
 *            kube_reconciler_free cancels the works in progress without a callback and, if the process leads,
 *            calls `ends`.
 * Units:     monotonic milliseconds.
 * Order:     it reconciles nothing while the process does not lead, nor before every cache (except spare
 *            ones) holds a list that was begun in this term of leadership. A key has one work at a time; a
 *            key added meanwhile is queued again. kube/manager.c calls kube_reconciler_lead and
 *            kube_reconciler_drain.
 */
#ifndef TK_KUBE_RECONCILER_H
#define TK_KUBE_RECONCILER_H

#include "kube/cache.h"
#include "kube/client.h"
#include "kube/workqueue.h"

/* After this long on keys the loop runs a turn, so that the lease and the probes do not wait. */
enum { KUBE_RECONCILER_TURN_MS = 50 };

struct kube_reconciler;
struct kube_work;

struct kube_reconciler_options {
    const char *name; /* label of its metrics; outlives the reconciler */
    void *ctx;
    /* `reconcile` ends its work exactly once, now or in a later callback. */
    void (*reconcile)(void *ctx, struct kube_work *w);
    /* A term of leadership begins; it ends, after its works were freed. Discard in `ends` what was recorded
     * during the term. May be NULL. */
    void (*begins)(void *ctx);
    void (*ends)(void *ctx);
    /* For the log. what: a resource's plural, or a key. The reconciler retries by itself. `problem` must not
     * be NULL. */
    void (*problem)(void *ctx, const char *what, const struct err *err);
    uint64_t seed; /* of the jitter of its watches */
};

struct kube_reconciler *kube_reconciler_new(struct kube_loop *l, const struct kube_transport *t,
                                            const struct kube_reconciler_options *options);
void kube_reconciler_free(struct kube_reconciler *r);

/* ---- sources */

struct kube_reconciler_source {
    struct kube_watcher_options watch; /* the reconciler sets its seed */
    /* Keys are reconciled before this cache is complete: `reconcile` checks kube_cache_is_listed where it
     * needs it. */
    bool spare;
    /* As in cache.h, but `gone` gets the ctx of the reconciler's options. */
    int (*decode)(const cJSON *object, const struct err *unreadable, struct kube_store_entry *ret,
                  struct err *err);
    void (*unsure)(void *value);
    void (*free_value)(void *value);
    void (*gone)(void *ctx, const struct kube_store_entry *e);
    void (*listed)(void *ctx); /* after each complete list, with the same ctx. May be NULL */
    /* Calls kube_reconciler_add for each key that a change concerns, with the same ctx. NULL: one key, the entry's
     * group in its namespace. */
    void (*map)(void *ctx, const struct kube_store_entry *e);
};

/* Add a source, before the loop runs. The cache belongs to the reconciler. */
struct kube_cache *kube_reconciler_watch(struct kube_reconciler *r,
                                         const struct kube_reconciler_source *source);

/* Namespaces are served in turn, see workqueue.h. A `key` of "" is ignored, and so is any key while the
 * process does not lead. */
void kube_reconciler_add(struct kube_reconciler *r, const char *ns, const char *key);

/* ---- works: the reconcile of one key. `reconcile` or a later callback ends each exactly once, which frees it and the
 * memory attached to it */

const char *kube_work_key(const struct kube_work *w); /* the key's name */
const char *kube_work_ns(const struct kube_work *w);

/* Attach memory that is freed with the work, however that ends. Once per work. */
void kube_work_attach(struct kube_work *w, void *data, void (*free_data)(void *data));

void kube_work_done(struct kube_work *w); /* success: earlier failures are forgotten */
void kube_work_after(struct kube_work *w,
                     int64_t delay_ms); /* as kube_work_done, and queue the key again after delay_ms */
void kube_work_put_back(
    struct kube_work *w,
    int64_t delay_ms); /* nothing was done: queue the key again after delay_ms; earlier failures count on */
void kube_work_retry(
    struct kube_work *w,
    int64_t retry_after_ms); /* failure: queue the key again after its back-off, no sooner than this */

/* Send one request, whose answer ends the work: success as kube_work_done, failure as kube_work_retry. Failures
 * other than conflicts are passed to `problem`. For several requests use client.h. */
void kube_work_send(struct kube_work *w, const struct kube_request *request);

/* ---- leadership and shutdown */

/* Begin or end a term of leadership; a new reconciler does not lead. At the start of a term every cache lists
 * again, so that it has what earlier leaders wrote, and each object of these lists adds its key. At the end
 * of a term the reconciler empties the queue and cancels the works in progress without a callback. The caches
 * stay up to date either way. Do not call it from `reconcile` or a reply handler: the end of a term frees all
 * works. */
void kube_reconciler_lead(struct kube_reconciler *r, bool leads);
bool kube_reconciler_leads(const struct kube_reconciler *r);

/* Call `synced` once, when every cache (except spare ones) has been complete for the first time, perhaps
 * before this returns. */
void kube_reconciler_await(struct kube_reconciler *r, void (*synced)(void *ctx), void *ctx);

/* Begin no more keys; call `drained` from a later turn, once no key is in work. */
void kube_reconciler_drain(struct kube_reconciler *r, void (*drained)(void *ctx), void *ctx);

bool kube_reconciler_synced(const struct kube_reconciler *r); /* what kube_reconciler_await waits for */

const char *kube_reconciler_name(const struct kube_reconciler *r);
struct kube_workqueue_stats kube_reconciler_queue(const struct kube_reconciler *r);
struct kube_workqueue_unfinished kube_reconciler_unfinished(const struct kube_reconciler *r);

/* Its caches in the order of kube_reconciler_watch; NULL beyond the last. */
const struct kube_cache *kube_reconciler_cache(const struct kube_reconciler *r, size_t i,
                                               const char **ret_resource);

static inline void kube_reconciler_freep(struct kube_reconciler **r)
{
    kube_reconciler_free(*r);
}
#define cleanup_kube_reconciler __attribute__((cleanup(kube_reconciler_freep)))

#endif
