/* cache.h - a local copy of a collection: a reflector that fills a store and reports each change.
 *
 * Ownership: borrows loop and transport, which outlive it. The store owns the values and frees them with
 *            free_value.
 * Order:     `changed` is called after an object was stored, with its new entry, and before an object is
 *            removed, with its last entry. For an object that moves to another group it is called with the
 *            old entry and then with the new one. `gone` is called just before the `changed` of a removal. An
 *            object is also removed when another object (another UID) takes its name. Neither callback may
 *            change the store. `synced` is called after every complete list.
 */
#ifndef TK_KUBE_CACHE_H
#define TK_KUBE_CACHE_H

#include "kube/reflector.h"
#include "kube/store.h"

struct kube_cache;

enum { KUBE_CACHE_KEEP = 0, KUBE_CACHE_DROP = 1 };

struct kube_cache_options {
    struct kube_watcher_options watch;
    /* Fill *ret, which comes with the namespace as its group. If it sets `name`, it sets also `ns` and `uid`: all strings are
     * then members of `value` and are not copied. KUBE_CACHE_KEEP: store it. KUBE_CACHE_DROP: ignore the
     * object; an entry under its name is removed, as if its object had been deleted. -1 with *err: the object
     * cannot be read. NULL: store only the names, grouped by namespace.
     * unreadable: NULL, or why the watcher or `decode` itself could not read the object, which then has at least what
     * skim.h finds. If it returns KUBE_CACHE_DROP or -1 in this case, the cache does not store the object and keeps
     * an entry with the same UID; after -1 it calls `problem`. */
    int (*decode)(const cJSON *object, const struct err *unreadable, struct kube_store_entry *ret,
                  struct err *err);
    /* The value may be out of date: only the object's name can be read, or a complete list lacks the object
     * but has an item without a readable name. The entry stays until an event or a list names it. The cache
     * then calls `changed`. May be NULL. */
    void (*unsure)(void *value);
    void (*free_value)(void *value); /* NULL: nothing to free */
    void (*changed)(void *ctx, const struct kube_store_entry *e);
    void (*gone)(void *ctx, const struct kube_store_entry *e); /* may be NULL */
    void (*synced)(void *ctx);
    void (*problem)(void *ctx, const struct err *err);
    void *ctx;
};

/* The first list begins in the next turn of the loop. */
struct kube_cache *kube_cache_new(struct kube_loop *l, const struct kube_transport *t,
                                  const struct kube_cache_options *options);
void kube_cache_free(struct kube_cache *c);

/* List again, as reflector_relist does. Entries stay until the list is complete. */
void kube_cache_relist(struct kube_cache *c, bool at_once);

/* The number of lists begun so far; and whether a list begun after the first `lists` of them is complete. */
uint64_t kube_cache_lists(const struct kube_cache *c);
bool kube_cache_is_listed(const struct kube_cache *c, uint64_t lists);

/* Whether the cache includes the write at this version: the watch has reached it, or
 * kube_cache_is_listed(lists). */
bool kube_cache_shows(const struct kube_cache *c, const char *version, uint64_t lists);

const struct kube_store *kube_cache_store(const struct kube_cache *c);
struct kube_watcher_stats kube_cache_stats(const struct kube_cache *c); /* .synced: the cache is complete */

static inline void kube_cache_freep(struct kube_cache **c)
{
    kube_cache_free(*c);
}
#define cleanup_kube_cache __attribute__((cleanup(kube_cache_freep)))

#endif
