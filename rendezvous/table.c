/* table.c - the store's hash table of keys and values. */
#include "rendezvous/table.h"

#include "common/hash.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

struct table_entry {
    struct table_entry *next;
    size_t key_len, value_len;
    char bytes[]; /* key, then value */
};

static size_t bucket_of(struct view key)
{
    uint64_t h = hash_fnv1a(HASH_FNV1A, key.p, key.len);

    return (size_t)(h ^ h >> 32) % TABLE_BUCKETS;
}

/* The pointer that points to the key's entry, or the NULL pointer at which a new entry would be linked. */
static struct table_entry **find(struct table_entry *const *buckets, struct view key)
{
    struct table_entry **link = (struct table_entry **)(uintptr_t)&buckets[bucket_of(key)];

    while (*link && !((*link)->key_len == key.len && memcmp((*link)->bytes, key.p, key.len) == 0))
        link = &(*link)->next;
    return link;
}

void table_release(struct table *t)
{
    for (size_t i = 0; i < TABLE_BUCKETS; i++)
        while (t->buckets[i]) {
            struct table_entry *next = t->buckets[i]->next;
            free(t->buckets[i]);
            t->buckets[i] = next;
        }
    t->keys = t->bytes = 0;
}

bool table_get(const struct table *t, struct view key, struct view *ret)
{
    const struct table_entry *e = *find(t->buckets, key);

    if (!e)
        return false;
    *ret = (struct view){e->bytes + e->key_len, e->value_len};
    return true;
}

bool table_set(struct table *t, struct view key, struct view value)
{
    struct table_entry **link = find(t->buckets, key), *old = *link;
    const size_t freed = old ? old->key_len + old->value_len : 0;

    if ((!old && t->keys == t->max_keys) || t->bytes - freed + key.len + value.len > t->max_bytes)
        return false;
    struct table_entry *e = memory_must(malloc(sizeof(*e) + key.len + value.len));
    *e = (struct table_entry){.next = old ? old->next : NULL, .key_len = key.len, .value_len = value.len};
    memcpy(e->bytes, key.p, key.len);
    if (value.len)
        memcpy(e->bytes + key.len, value.p, value.len);
    *link = e;
    t->keys += old == NULL;
    t->bytes = t->bytes - freed + key.len + value.len;
    free(old);
    return true;
}
