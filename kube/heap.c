/* heap.c - an intrusive binary heap. */
#include "kube/heap.h"
#include "common/memory.h"

#include <stdbool.h>
#include <stdlib.h>

static bool sooner(const struct heap_node *a, const struct heap_node *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void place(struct heap *h, struct heap_node *node, size_t i)
{
    h->nodes[i] = node;
    node->slot = i + 1;
}

static void sift_up(struct heap *h, struct heap_node *node, size_t i)
{
    for (; i > 0 && sooner(node, h->nodes[(i - 1) / 2]); i = (i - 1) / 2)
        place(h, h->nodes[(i - 1) / 2], i);
    place(h, node, i);
}

static void sift_down(struct heap *h, struct heap_node *node, size_t i)
{
    for (size_t child = 2 * i + 1; child < h->n; child = 2 * i + 1) {
        if (child + 1 < h->n && sooner(h->nodes[child + 1], h->nodes[child]))
            child++;
        if (!sooner(h->nodes[child], node))
            break;
        place(h, h->nodes[child], i);
        i = child;
    }
    place(h, node, i);
}

void heap_add(struct heap *h, struct heap_node *node, int64_t at_ms)
{
    heap_remove(h, node);
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        h->nodes = memory_must(reallocarray(h->nodes, h->cap, sizeof(struct heap_node *)));
    }
    node->at_ms = at_ms;
    node->order = h->order++;
    h->n++;
    sift_up(h, node, h->n - 1);
}

void heap_remove(struct heap *h, struct heap_node *node)
{
    if (!node->slot)
        return;
    size_t i = node->slot - 1;
    struct heap_node *last = h->nodes[--h->n];

    node->slot = 0;
    if (last == node)
        return;
    if (i > 0 && sooner(last, h->nodes[(i - 1) / 2]))
        sift_up(h, last, i);
    else
        sift_down(h, last, i);
}

void heap_release(struct heap *h)
{
    free(h->nodes);
    *h = (struct heap){0};
}
