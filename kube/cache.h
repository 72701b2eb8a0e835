/* cache.h - a local copy of a collection: a reflector that fills a store and reports each change.
 *
 * Ownership: borrows loop and transport, which outlive it. The store owns the values and frees them with
 *            free_value.
 * Order:     `changed` is called after an object was stored, with its new entry, and before an object is
 *            removed, with its last entry. For an object that moves to another group it is called with the
 *            old entry and then with the new one. `gone` is called just before the `changed` of a removal; an
 *            object whose name another object (another UID) takes is removed, too. Neither callback may
 *            change the store. `synced` is called after every complete list.
 */
#ifndef TK_KUBE_CACHE_H
#define TK_KUBE_CACHE_H

#include "kube/reflector.h"
#include "kube/store.h"

struct kube_cache;

/* What to store of an object. `decode` gets it with the namespace as its group and no value. */
struct kube_cache_item {
    /* Valid as long as the decoded object, or as `value` if `name` is set. NULL: no group. */
    const char *group;
    void *value;
    const char *ns, *name,
        /* All three or none. If set, they and `group` point into `value` and are not copied. */
        *uid;
};

enum { KUBE_CACHE_KEEP = 0, KUBE_CACHE_DROP = 1 };

struct kube_cache_options {
    struct kube_watcher_options watch;
    /* Fill *ret. KUBE_CACHE_KEEP: store it. KUBE_CACHE_DROP: ignore the object; an entry under its name is removed, as
     * if its object had been deleted. -1 with *err: the object cannot be read. NULL: store only the names,
     * grouped by namespace. */
    int (*decode)(const cJSON *object, struct kube_cache_item *ret, struct err *err);
    /* The same for an object that the watcher or `decode` could not read. `names` has at least what
     * skim.h finds. NULL or -1: the object is not stored, `problem` is called, and an entry with its UID
     * stays as it was. */
    int (*decode_unreadable)(const cJSON *names, const struct err *why, struct kube_cache_item *ret);
    void (*free_value)(void *value); /* NULL: nothing to free */
    void (*changed)(void *ctx, const struct kube_store_entry *e);
    void (*gone)(void *ctx, const struct kube_store_entry *e); /* may be NULL */
    void (*synced)(void *ctx);
    void (*problem)(void *ctx, const struct err *err);
    void *ctx;
};

/* It begins to list in the next turn of the loop. */
struct kube_cache *kube_cache_new(struct kube_loop *l, const struct kube_transport *t,
                                  const struct kube_cache_options *options);
void kube_cache_free(struct kube_cache *c);

/* Replace the cached copy of the object with this UID by what a live read returned, which must have a
 * name. Without such a copy nothing happens: the watch reported the deletion after the server had made
 * that answer, and no second event would remove the object. unreadable: NULL, or why nothing but the names
 * could be read. */
void kube_cache_put(struct kube_cache *c, const char *uid, const cJSON *object, const struct err *unreadable);

/* A live read did not find the object with this UID: remove it. `gone` and `changed` are called at once, and
 * not again when the watch reports the deletion. */
void kube_cache_forget(struct kube_cache *c, const char *ns, const char *name, const char *uid);

const struct kube_store *kube_cache_store(const struct kube_cache *c);
struct kube_watcher_stats kube_cache_stats(const struct kube_cache *c); /* .synced: the cache is complete */

static inline void kube_cache_freep(struct kube_cache **c)
{
    kube_cache_free(*c);
}
#define cleanup_kube_cache __attribute__((cleanup(kube_cache_freep)))

#endif
