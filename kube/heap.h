/* heap.h - a binary heap of timed nodes that live inside the caller's structs; the earliest is first. Pure.
 *
 * Ownership: heap_release frees the array, never the nodes. Remove a node before its memory is freed.
 * Order:     by time; equal times first in, first out.
 */
#ifndef TK_KUBE_HEAP_H
#define TK_KUBE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_node {
    int64_t at_ms;
    uint64_t order;
    size_t slot; /* index in the array + 1; 0 while not in the heap */
};

struct heap {
    struct heap_node **nodes;
    size_t n, cap;
    uint64_t order;
};

void heap_add(struct heap *h, struct heap_node *node, int64_t at_ms); /* a node that is already in it moves */
void heap_remove(struct heap *h, struct heap_node *node);             /* not in it: no effect */

static inline struct heap_node *heap_first(const struct heap *h)
{
    return h->n ? h->nodes[0] : NULL;
}

void heap_release(struct heap *h);

#endif
