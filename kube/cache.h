/* cache.h - a reflector and its store in one: a local copy of a collection that says what changed.
 *
 * Ownership: borrows loop and transport; values belong to the store and go through free_value.
 * Order:     `changed` comes after an object was stored, with its new entry, and before one goes, with its
 *            last; when an object moves to another group, once for each. It must not change the store.
 *            `synced` comes after every complete list.
 */
#ifndef TK_KUBE_CACHE_H
#define TK_KUBE_CACHE_H

#include "kube/reflector.h"
#include "kube/store.h"

struct cache;

struct cache_options {
    struct watcher_options watch;
    /* What to keep of an object, and its group: a string that lives as long as the object. NULL: keep only names. */
    void *(*decode)(void *ctx, const cJSON *object, const char **ret_group);
    void (*free_value)(void *value); /* NULL: nothing to free */
    void (*changed)(void *ctx, const struct store_entry *e);
    void (*synced)(void *ctx);
    void (*problem)(void *ctx, const struct err *err);
    void *ctx;
};

/* It begins to list in the next turn of the loop. */
struct cache *cache_new(struct loop *l, const struct transport *t, const struct cache_options *options);
void cache_free(struct cache *c);

const struct store *cache_store(const struct cache *c);
struct watcher_stats cache_stats(const struct cache *c); /* .synced: may be relied upon */

static inline void cache_freep(struct cache **c)
{
    cache_free(*c);
}
#define cleanup_cache __attribute__((cleanup(cache_freep)))

#endif
