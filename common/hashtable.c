/* hashtable.c - a chained hash table that doubles its buckets when it is full. */
#include "common/hashtable.h"

#include "common/memory.h"

#include <stdlib.h>

enum { BUCKETS_MIN = 16 };

static struct hashtable_node **bucket(const struct hashtable *t, uint32_t hash)
{
    return &t->buckets[hash & (t->n_buckets - 1)];
}

static void put(struct hashtable *t, struct hashtable_node *n)
{
    struct hashtable_node **at = bucket(t, n->hash);

    n->next = *at;
    *at = n;
}

static void grow(struct hashtable *t)
{
    struct hashtable old = *t;

    t->n_buckets = old.n_buckets ? 2 * old.n_buckets : BUCKETS_MIN;
    t->buckets = memory_must(calloc(t->n_buckets, sizeof(*t->buckets)));
    for (size_t i = 0; i < old.n_buckets; i++)
        for (struct hashtable_node *n = old.buckets[i]; n;) {
            struct hashtable_node *next = n->next;
            put(t, n);
            n = next;
        }
    free(old.buckets);
}

void hashtable_add(struct hashtable *t, struct hashtable_node *n, uint32_t hash)
{
    if (t->count == t->n_buckets)
        grow(t);
    n->hash = hash;
    put(t, n);
    t->count++;
}

void hashtable_remove(struct hashtable *t, struct hashtable_node *n)
{
    struct hashtable_node **at = bucket(t, n->hash);

    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    t->count--;
}

void hashtable_release(struct hashtable *t)
{
    free(t->buckets);
    *t = (struct hashtable){0};
}

static struct hashtable_node *same(struct hashtable_node *n, uint32_t hash)
{
    while (n && n->hash != hash)
        n = n->next;
    return n;
}

struct hashtable_node *hashtable_first_of(const struct hashtable *t, uint32_t hash)
{
    return t->n_buckets ? same(*bucket(t, hash), hash) : NULL;
}

struct hashtable_node *hashtable_next_of(const struct hashtable_node *n)
{
    return same(n->next, n->hash);
}

static struct hashtable_node *first_from(const struct hashtable *t, size_t i)
{
    for (; i < t->n_buckets; i++)
        if (t->buckets[i])
            return t->buckets[i];
    return NULL;
}

struct hashtable_node *hashtable_first(const struct hashtable *t)
{
    return first_from(t, 0);
}

struct hashtable_node *hashtable_next(const struct hashtable *t, const struct hashtable_node *n)
{
    return n->next ? n->next : first_from(t, (n->hash & (t->n_buckets - 1)) + 1);
}
