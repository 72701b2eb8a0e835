/* cache.h - a reflector and its store in one: a local copy of a collection that says what changed.
 *
 * Ownership: borrows loop and transport; values belong to the store and go through free_value.
 * Order:     `changed` comes after an object was stored, with its new entry, and before one goes, with its
 *            last; when an object moves to another group, once for each. `gone` comes before that `changed`, and
 *            also when another object took the name. Neither may change the store.
 *            `synced` comes after every complete list.
 */
#ifndef TK_KUBE_CACHE_H
#define TK_KUBE_CACHE_H

#include "kube/reflector.h"
#include "kube/store.h"

struct kube_cache;

/* What to keep of an object; handed to `decode` with the namespace as its group and no value. */
struct kube_cache_item {
    const char *group; /* lives as long as the object or the value; NULL: none */
    void *value;
    const char *ns, *name,
        *uid; /* all or none: those in the value, as is `group` then; they are not copied */
};

enum { KUBE_CACHE_KEEP = 0, KUBE_CACHE_DROP = 1 };

/* Who is told of a cache's changes, besides the one that made it. See Order above. */
struct kube_cache_listener {
    void (*changed)(void *ctx, const struct kube_store_entry *e);
    void (*gone)(void *ctx, const struct kube_store_entry *e); /* may be NULL */
    void (*synced)(void *ctx);
    void *ctx;
    struct kube_cache_listener *next; /* the cache's */
};

struct kube_cache_options {
    struct kube_watcher_options watch;
    /* KUBE_CACHE_DROP: it is none of ours, and what was kept under its name goes as if it had been deleted. -1: it is unreadable.
     * NULL: keep only names, by namespace. */
    int (*decode)(const cJSON *object, struct kube_cache_item *ret, struct err *err);
    /* The same for an object that cannot be read, by the watcher or by `decode`: `names` has what skim_object finds. NULL: it
     * is left out, `problem` is told, and what was kept of it before stays. */
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

/* What was read live takes the place of the copy of the object with this UID, for whose sake it was asked for. It must
 * have a name. When that copy is gone already, nothing happens: the watch was told of the end after the answer was made,
 * and no event would come to end the object a second time. unreadable: NULL, or why it could not be read but for its
 * names. */
void kube_cache_put(struct kube_cache *c, const char *uid, const cJSON *object, const struct err *unreadable);

/* A live read did not find this very object: `gone` and `changed` come at once, and not again when the watch hears of
 * it. */
void kube_cache_forget(struct kube_cache *c, const char *ns, const char *name, const char *uid);

/* The listener lives as long as the cache, or until it is removed; neither from inside a callback of the cache. */
void kube_cache_listen(struct kube_cache *c, struct kube_cache_listener *listener);
void kube_cache_listen_no_more(struct kube_cache *c, struct kube_cache_listener *listener);

/* What is kept of an object; NULL: it is not there, or nothing is kept of it. */
void *kube_cache_get(const struct kube_cache *c, const char *ns, const char *name);

const struct kube_store *kube_cache_store(const struct kube_cache *c);
struct kube_watcher_stats kube_cache_stats(const struct kube_cache *c); /* .synced: may be relied upon */

static inline void kube_cache_freep(struct kube_cache **c)
{
    kube_cache_free(*c);
}
#define cleanup_kube_cache __attribute__((cleanup(kube_cache_freep)))

#endif
