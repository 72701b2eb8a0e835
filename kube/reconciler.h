/* reconciler.h - the frame of a controller: changes become keys, a key becomes one call of yours, and how that ended
 * says when it comes again.
 *
 *     reconciler_watch -> cache -map-> reconciler_add(key) -> queue -> reconcile(work) -> work_done
 *                                                               ^                         work_after
 *                                                               '------ back-off -------- work_retry
 *
 * Ownership: borrows loop and transport. Its caches, the queue and every struct work (work.h) are its own.
 *            reconciler_free ends what is under way without telling.
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
    RECONCILER_PARALLEL = WORKQUEUE_PARALLEL,
    RECONCILER_TURN_MS =
        50, /* once keys have taken so long, the loop has a turn: the lease and the probes do not wait */
};

struct reconciler;

struct reconciler_options {
    const char *name; /* of its metrics; lives as long as the reconciler */
    void *ctx;
    void (*reconcile)(void *ctx, struct work *w);
    void (*begins)(
        void *ctx); /* a term does: before its first key, once the caches are complete. NULL: no matter */
    /* For the log: what failed, by a resource's plural or a key. The reconciler goes on by itself. */
    void (*problem)(void *ctx, const char *what, const struct err *err);
    uint64_t seed; /* of its watches' jitter */
};

struct reconciler *reconciler_new(struct loop *l, const struct transport *t,
                                  const struct reconciler_options *options);
void reconciler_free(struct reconciler *r);

/* ---- what it looks at */

struct reconciler_source {
    struct watcher_options watch; /* its seed is set by the reconciler */
    /* As in cache.h; `gone` gets the ctx of the reconciler's options. */
    int (*decode)(const cJSON *object, struct cache_item *ret, struct err *err);
    int (*decode_unreadable)(const cJSON *names, const struct err *why, struct cache_item *ret);
    void (*free_value)(void *value);
    void (*gone)(void *ctx, const struct store_entry *e);
    /* Which keys a change concerns: calls reconciler_add for each. NULL: the object's namespace and group. */
    void (*map)(struct reconciler *r, const struct store_entry *e);
};

/* Before the loop runs. The cache is the reconciler's. */
struct cache *reconciler_watch(struct reconciler *r, const struct reconciler_source *source);

/* Keys of a namespace come in turn with those of others, see workqueue.h; a `key` of "" is none. */
void reconciler_add(struct reconciler *r, const char *ns, const char *key);

/* ---- its life */

/* Stop to reconcile, or begin again; the caches are kept true either way. What is under way goes on. While it does not
 * lead no key is added (else who waits would keep in mind all that ever came and went); when it begins, the keys of all
 * that the caches hold are. */
void reconciler_lead(struct reconciler *r, bool leads);

/* The number of the time that it leads, from 1 on; 0 while it does not. What was learned in an earlier one is old. */
uint64_t reconciler_term(const struct reconciler *r);

/* Take no new keys; `drained` is called once nothing is under way, perhaps from inside. */
void reconciler_drain(struct reconciler *r, void (*drained)(void *ctx), void *ctx);

bool reconciler_synced(const struct reconciler *r);

/* When the watch that is furthest behind last heard of the server; INT64_MAX without any. */
int64_t reconciler_progress_ms(const struct reconciler *r);

const char *reconciler_name(const struct reconciler *r);
struct workqueue_stats reconciler_queue(const struct reconciler *r);
struct workqueue_unfinished reconciler_unfinished(const struct reconciler *r);

/* The caches one by one, as they were added; NULL beyond the last. */
const struct cache *reconciler_cache(const struct reconciler *r, size_t i, const char **ret_resource);

static inline void reconciler_freep(struct reconciler **r)
{
    reconciler_free(*r);
}
#define cleanup_reconciler __attribute__((cleanup(reconciler_freep)))

#endif
