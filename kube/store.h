/* store.h - a local copy of a collection: values by namespace and name, and by group.
 *
 * A group is any string that several objects share: children are stored under their controller's UID, owners
 * under their own, so that both are found by one UID.
 * Ownership: values belong to the store from kube_store_put on and are freed with `free_value`. Entries and
 *            strings are valid until their object is replaced or removed.
 * Memory:    about 110 bytes per object besides the value, and the strings unless the value holds them.
 */
#ifndef TK_KUBE_STORE_H
#define TK_KUBE_STORE_H

#include "common/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_store;

struct kube_store_entry {
    const char *ns; /* "" for cluster-scoped objects */
    const char *name;
    const char *uid;
    const char *group; /* "" for none */
    void *value;
};

struct kube_store *kube_store_new(void (*free_value)(void *value));
void kube_store_free(struct kube_store *s);

/* Add or replace; the old value is freed. uid and group may be NULL. */
const struct kube_store_entry *kube_store_put(struct kube_store *s, const char *ns, const char *name,
                                              const char *uid, const char *group, void *value);

/* The same for values that hold the strings themselves (none NULL) as long as they exist: nothing is
 * copied. */
const struct kube_store_entry *kube_store_put_view(struct kube_store *s, const struct kube_store_entry *e);

const struct kube_store_entry *kube_store_get(const struct kube_store *s, const char *ns, const char *name);

/* False: it was not there. */
bool kube_store_remove(struct kube_store *s, const char *ns, const char *name);

size_t kube_store_count(const struct kube_store *s);

/* Heap memory in use, with the allocator's overhead: tables, entries, and what `value_bytes` (NULL: nothing)
 * returns for each value. Visits all objects. */
size_t kube_store_bytes(const struct kube_store *s, size_t (*value_bytes)(const void *value));

/* The members of a group, unordered: for (e = kube_store_group(s, uid); e; e = kube_store_group_next(e)). Do
 * not put or remove inside the loop. */
const struct kube_store_entry *kube_store_group(const struct kube_store *s, const char *group);
const struct kube_store_entry *kube_store_group_next(const struct kube_store_entry *e);

/* All objects, unordered: for (e = kube_store_first(s); e; e = kube_store_next(s, e)). */
const struct kube_store_entry *kube_store_first(const struct kube_store *s);
const struct kube_store_entry *kube_store_next(const struct kube_store *s, const struct kube_store_entry *e);

/* For a new list: mark all objects, put those of the list (which unmarks them), sweep the others.
 * kube_store_sweep calls `gone` (may be NULL) for each object before it is freed; it must not change the
 * store. */
void kube_store_mark(struct kube_store *s);
void kube_store_unmark_one(const struct kube_store_entry *e); /* as if it had been put */

/* The list has an item without a readable name, which may be any marked object of this namespace (NULL: of
 * all namespaces). Marked objects that are not put later stay as `doubted` instead of being swept. */
void kube_store_doubt(struct kube_store *s, const char *ns);
bool kube_store_is_doubted(const struct kube_store_entry *e);
size_t kube_store_sweep(struct kube_store *s, void (*gone)(void *ctx, const struct kube_store_entry *e),
                        void *ctx);

static inline void kube_store_freep(struct kube_store **s)
{
    kube_store_free(*s);
}
#define cleanup_kube_store __attribute__((cleanup(kube_store_freep)))

#endif
