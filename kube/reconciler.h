/* reconciler.h - the frame of a controller: changes become keys, a key becomes one call of yours, and how that ended
 * says when it comes again.
 *
 *     kube_reconciler_watch -> cache -map-> kube_reconciler_add(key) -> queue -> reconcile(work) -> kube_work_done
 *                                                               ^                         kube_work_after
 *                                                               '------ back-off -------- kube_work_retry
 *
 * Ownership: borrows loop and transport. Its caches, the queue and every struct kube_work (work.h) are its own.
 *            kube_reconciler_free ends what is under way without telling.
 * Units:     monotonic milliseconds.
 * Order:     nothing is reconciled before every cache is complete, nor while it does not lead. A key is worked on
 *            once at a time; what is added meanwhile brings it back.
 */
#ifndef TK_KUBE_RECONCILER_H
#define TK_KUBE_RECONCILER_H

#include "kube/cache.h"
#include "kube/work.h"

/* Works at once; of one namespace fewer: see workqueue.h. */
enum {
    KUBE_RECONCILER_PARALLEL = WORKQUEUE_PARALLEL,
    KUBE_RECONCILER_TURN_MS =
        50, /* once keys have taken so long, the loop has a turn: the lease and the probes do not wait */
};

struct kube_reconciler;

struct kube_reconciler_options {
    const char *name; /* of its metrics; lives as long as the reconciler */
    void *ctx;
    void (*reconcile)(void *ctx, struct kube_work *w);
    void (*begins)(
        void *ctx); /* a term does: before its first key, once the caches are complete. NULL: no matter */
    /* For the log: what failed, by a resource's plural or a key. The reconciler goes on by itself. */
    void (*problem)(void *ctx, const char *what, const struct err *err);
    uint64_t seed; /* of its watches' jitter */
};

struct kube_reconciler *kube_reconciler_new(struct kube_loop *l, const struct kube_transport *t,
                                            const struct kube_reconciler_options *options);
void kube_reconciler_free(struct kube_reconciler *r);

/* ---- what it looks at */

struct kube_reconciler_source {
    struct kube_watcher_options watch; /* its seed is set by the reconciler */
    /* As in cache.h; `gone` gets the ctx of the reconciler's options. */
    int (*decode)(const cJSON *object, struct kube_cache_item *ret, struct err *err);
    int (*decode_unreadable)(const cJSON *names, const struct err *why, struct kube_cache_item *ret);
    void (*free_value)(void *value);
    void (*gone)(void *ctx, const struct kube_store_entry *e);
    /* Which keys a change concerns: calls kube_reconciler_add for each. NULL: the object's namespace and group. */
    void (*map)(struct kube_reconciler *r, const struct kube_store_entry *e);
};

/* Before the loop runs. The cache is the reconciler's. */
struct kube_cache *kube_reconciler_watch(struct kube_reconciler *r,
                                         const struct kube_reconciler_source *source);

/* The same cache for a second reconciler: one watch, one copy. It stays the first one's, which goes after this one. */
struct kube_reconciler_shared {
    struct kube_cache *cache;
    /* As in kube_reconciler_source. */
    void (*gone)(void *ctx, const struct kube_store_entry *e);
    void (*map)(struct kube_reconciler *r, const struct kube_store_entry *e);
};
void kube_reconciler_share(struct kube_reconciler *r, const struct kube_reconciler_shared *shared);

/* Keys of a namespace come in turn with those of others, see workqueue.h; a `key` of "" is none. */
void kube_reconciler_add(struct kube_reconciler *r, const char *ns, const char *key);

/* ---- its life */

/* Stop to reconcile, or begin again; the caches are kept true either way. What is under way goes on. While it does not
 * lead no key is added (else who waits would keep in mind all that ever came and went); when it begins, the keys of all
 * that the caches hold are. */
void kube_reconciler_lead(struct kube_reconciler *r, bool leads);

/* The number of the time that it leads, from 1 on; 0 while it does not. What was learned in an earlier one is old. */
uint64_t kube_reconciler_term(const struct kube_reconciler *r);

/* Take no new keys; `drained` is called once nothing is under way, perhaps from inside. */
void kube_reconciler_drain(struct kube_reconciler *r, void (*drained)(void *ctx), void *ctx);

bool kube_reconciler_synced(const struct kube_reconciler *r);

/* When the watch that is furthest behind last heard of the server; INT64_MAX without any. */
int64_t kube_reconciler_progress_ms(const struct kube_reconciler *r);

const char *kube_reconciler_name(const struct kube_reconciler *r);
struct kube_workqueue_stats kube_reconciler_queue(const struct kube_reconciler *r);
struct kube_workqueue_unfinished kube_reconciler_unfinished(const struct kube_reconciler *r);

/* Its own caches one by one, as they were added; NULL beyond the last. */
const struct kube_cache *kube_reconciler_cache(const struct kube_reconciler *r, size_t i,
                                               const char **ret_resource);

static inline void kube_reconciler_freep(struct kube_reconciler **r)
{
    kube_reconciler_free(*r);
}
#define cleanup_kube_reconciler __attribute__((cleanup(kube_reconciler_freep)))

#endif
