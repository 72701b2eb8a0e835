/* store.h - a local copy of a collection: values by namespace and name, and in groups.
 *
 * A group is any string shared by some objects: children are stored under their controller's UID,
 * owners under their own, so both are found by the same UID.
 * Ownership: values belong to the store from store_put on and go through `free_value`. Entries and
 *            strings are valid until their object is replaced or removed.
 * Units:     about 110 bytes per object and, unless the value has them, the strings; besides the value.
 */
#ifndef TK_KUBE_STORE_H
#define TK_KUBE_STORE_H

#include "common/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

struct store_entry {
    const char *ns; /* "" for cluster-scoped objects */
    const char *name;
    const char *uid;
    const char *group; /* "" for none */
    void *value;
};

struct store *store_new(void (*free_value)(void *value));
void store_free(struct store *s);

/* Add or replace; the old value is freed. uid and group may be NULL. */
const struct store_entry *store_put(struct store *s, const char *ns, const char *name, const char *uid,
                                    const char *group, void *value);

/* The same for values that hold the strings themselves (none NULL) for as long as they live: nothing is copied. */
const struct store_entry *store_put_view(struct store *s, const struct store_entry *e);

const struct store_entry *store_get(const struct store *s, const char *ns, const char *name);

/* With uid not NULL, only that very object. False: it was not there. */
bool store_remove(struct store *s, const char *ns, const char *name, const char *uid);

size_t store_count(const struct store *s);

/* The heap that the store takes now, with the allocator's share: tables, entries and what `value_bytes` (NULL:
 * nothing) says of each value. Walks over all objects. */
size_t store_bytes(const struct store *s, size_t (*value_bytes)(const void *value));

/* The members of a group, in no order: for (e = store_group(s, uid); e; e = store_group_next(e)). No put or
 * remove meanwhile. */
const struct store_entry *store_group(const struct store *s, const char *group);
const struct store_entry *store_group_next(const struct store_entry *e);

/* All of them, in no order: for (e = store_first(s); e; e = store_next(s, e)). */
const struct store_entry *store_first(const struct store *s);
const struct store_entry *store_next(const struct store *s, const struct store_entry *e);

/* Relist: mark, put what the list holds, sweep the rest. `gone` (may be NULL) is told of each before it is
 * freed and must not change the store. Returns how many went. */
void store_mark(struct store *s);
void store_mark_one(const struct store_entry *e);
void store_unmark_one(const struct store_entry *e); /* as if it had been put */
bool store_is_marked(const struct store_entry *e);  /* not put since the mark */
size_t store_sweep(struct store *s, void (*gone)(void *ctx, const struct store_entry *e), void *ctx);

static inline void store_freep(struct store **s)
{
    store_free(*s);
}
#define cleanup_store __attribute__((cleanup(store_freep)))

#endif
