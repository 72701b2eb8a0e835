/* layout.h - which ranks share a pod. Pure.
 *
 * Order:     sums go through the pods in rank order (pods_chain.c), so a pod's ranks must be consecutive; every launcher
 *            numbers them so.
 *            When one of a pod cannot share memory with the rest, each of them becomes a pod by itself.
 * Ownership: layout_make fills *l, layout_release frees what it holds.
 * Errors:    ERR_INVALID names the ranks that do not fit, and what was expected.
 */
#ifndef TK_COLLECTIVES_LAYOUT_H
#define TK_COLLECTIVES_LAYOUT_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdint.h>

/* One rank as it presented itself. */
struct member {
    uint8_t addr[16];  /* IPv6, or an IPv4 address mapped into it */
    uint32_t port;     /* where it takes links */
    int32_t group;     /* GROUP_RANK */
    int32_t local;     /* LOCAL_RANK */
    int32_t per_group; /* LOCAL_WORLD_SIZE */
    uint32_t alone;    /* 1: it cannot share memory with the others of its pod */
    uint32_t pad;
    uint64_t net; /* the number of its network namespace */
};

enum { LAYOUT_LANES_MAX = 8 };

struct layout {
    int n_pods;
    int *first; /* [n_pods + 1] the first rank of each pod; the last entry is the world */
    int lanes;  /* links between two neighbouring pods: one per rank, as far as the smallest pod has ranks */
};

int layout_make(struct layout *l, const struct member *members, int world, struct err *err) MUST_CHECK;
void layout_release(struct layout *l);
int layout_pod_of(const struct layout *l, int rank);

#endif
