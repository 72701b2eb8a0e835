/* pod_layout.h - group the ranks of a run into pods, from the values that each rank reported. pods_meet.c calls
 * it. No system calls.
 *
 * Order:     a pod's ranks must be consecutive, because sums pass through the pods in rank order (pods_chain.c);
 *            launchers number them so. When one rank of a pod cannot share memory with the others, each rank of
 *            that pod becomes a pod of its own.
 * Ownership: pod_layout_make fills *l, pod_layout_release frees what it holds.
 * Errors:    ERR_INVALID names the ranks whose values do not fit together, and what was expected.
 */
#ifndef TK_COLLECTIVES_POD_LAYOUT_H
#define TK_COLLECTIVES_POD_LAYOUT_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdint.h>

/* The values that a rank reports when it registers (watch_wire.h), in the layout that is sent. */
struct rank_member {
    uint8_t addr[16];  /* IPv6, or IPv4 mapped into it */
    uint32_t port;     /* TCP port where it accepts links from other pods */
    int32_t group;     /* GROUP_RANK */
    int32_t local;     /* LOCAL_RANK */
    int32_t per_group; /* LOCAL_WORLD_SIZE */
    uint32_t alone;    /* 1: it cannot share memory (host_can_share is false) */
    uint32_t pad;
    uint64_t net; /* inode number of its network namespace (host_network) */
};

enum { POD_LANES_MAX = 8 };

struct pod_layout {
    int n_pods;
    int *first; /* [n_pods + 1] the first rank of each pod; the last entry is the world */
    int lanes; /* links between two neighbouring pods: the ranks of the smallest pod, at most POD_LANES_MAX */
};

/* members: [world], by rank. */
int pod_layout_make(struct pod_layout *l, const struct rank_member *members, int world,
                    struct err *err) MUST_CHECK;
void pod_layout_release(struct pod_layout *l);
/* The index of the pod that `rank` is in. */
int pod_layout_of(const struct pod_layout *l, int rank);

#endif
