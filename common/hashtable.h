/* hashtable.h - an intrusive chained hash table: its links are members of the caller's structs.
 *
 * Ownership: the caller owns the nodes and does not move them while they are in a table. A zeroed table is
 *            empty. hashtable_release frees only the buckets.
 * Order:     the caller computes hashes (hash.h) and compares: walk over the nodes of one hash.
 *                for (n = hashtable_first_of(t, hash); n && !is_it(n); n = hashtable_next_of(n)) ;
 *            During a walk over all nodes, add none and remove only the node that the walk has just left.
 */
#ifndef TK_COMMON_HASHTABLE_H
#define TK_COMMON_HASHTABLE_H

#include <stddef.h>
#include <stdint.h>

struct hashtable_node {
    struct hashtable_node *next;
    uint32_t hash;
};

struct hashtable {
    struct hashtable_node **buckets;
    size_t n_buckets; /* a power of two, or 0; at least as many as nodes */
    size_t count;
};

/* The 32 bits that a table stores of a 64-bit hash. */
static inline uint32_t hashtable_fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

void hashtable_add(struct hashtable *t, struct hashtable_node *n, uint32_t hash);
void hashtable_remove(struct hashtable *t, struct hashtable_node *n); /* which is in it */
void hashtable_release(struct hashtable *t);

/* The nodes with this hash, the last one added first; NULL: no more. */
struct hashtable_node *hashtable_first_of(const struct hashtable *t, uint32_t hash);
struct hashtable_node *hashtable_next_of(const struct hashtable_node *n);

/* All nodes, unordered. */
struct hashtable_node *hashtable_first(const struct hashtable *t);
struct hashtable_node *hashtable_next(const struct hashtable *t, const struct hashtable_node *n);

#endif
