/* pods.h - collectives between the ranks of one or several pods: shared memory inside each pod (host.h), TCP between
 * pods. open.c opens it; only pods*.c use the rest.
 *
 * Sums:      are taken in rank order, 0 + 1 + 2 + ..., by one of two algorithms:
 *            - chain (pods_chain.c): the first pod sums its ranks' vectors and sends the partial sum to the next
 *              pod, which adds its own; the last pod sends the result back the same way. The vector streams
 *              through, so the time is that of one vector, not of one per pod. Each link carries the vector once
 *              in each direction, about as much as in a ring.
 *            - direct (pods_direct.c), when every pod has one rank: each rank sums one part of the vector and
 *              sends the result to all others.
 *            The other collectives between pods are sums too (pods_reduce.c).
 * Links:     chain: rank i < layout.lanes of a pod has a link to rank i of each neighbouring pod, for one
 *            part of the vector. direct: each rank has a link to every other rank. Messages (send, recv) use
 *            separate links.
 * Ownership: struct pods owns all that it points to.
 * Threads:   one thread uses a struct pods; the watch has its own.
 * Errors:    those of collectives.h. The first failure is kept in host->failed.
 */
#ifndef TK_COLLECTIVES_PODS_H
#define TK_COLLECTIVES_PODS_H

#include "collectives/host.h"
#include "collectives/pod_layout.h"
#include "rendezvous/service.h"

#include <poll.h>

enum {
    PODS_DIRECT_MAX = 16,          /* the largest number of pods for the direct algorithm */
    PODS_AREA_BYTES = 512 * 1024,  /* size of `area` */
    PODS_BLOCK_BYTES = 128 * 1024, /* how far the first pod sums ahead of what it has sent */
    PODS_PENDING_MAX = 64,         /* accepted connections whose hello has not arrived yet */
};

/* The header before the data of every call on every link. In native byte order, which is the same on all ranks:
 * the watch has checked it by its magic number. */
struct wire_head {
    uint32_t magic;
    uint32_t from; /* rank of the sender */
    uint64_t seq;  /* number of the collective call (watch.h) */
    struct host_call call;
};

/* One direction of a link during one call: a header, then len bytes. */
struct flow {
    int fd, peer;
    bool out, ready; /* direction; ready: an outgoing header is filled in */
    struct wire_head head;
    size_t head_at; /* bytes of the header that have been transferred */
    char *buf;      /* the data from offset `skip` on */
    /* Offsets in the data: transferred up to `at`; allowed for now up to `limit`; `len` in all. */
    size_t skip, at, limit, len;
};

/* An accepted connection that has not sent its hello. */
struct pending {
    int fd;
    uint8_t addr[16];
    int64_t came_ms;
};

struct pods {
    int rank, world;
    struct host *host; /* the ranks of this pod; NULL: their layout is not known yet */
    struct pod_layout layout;
    int pod;       /* index of this rank's pod */
    bool unshared; /* the pod's ranks cannot share memory: the layout has one pod per rank */
    struct pass pass;
    struct watch watch;
    struct service door; /* accepts links from other pods; without a thread */
    struct pending pending[PODS_PENDING_MAX];
    int n_pending;
    int *links;       /* [world] link to each pod; -1: none. `from` and `to` follow in the same allocation */
    int *from, *to;   /* [world] links for messages from and to each rank; -1: not connected yet */
    char *area;       /* [PODS_AREA_BYTES] receive buffer of the sums */
    const void **src; /* [world + 1] scratch */
};

static inline bool flow_has_head(const struct flow *f)
{
    return f->head_at == sizeof(f->head);
}

/* Whether all ranks of the run are in this pod: then there is no watch. */
static inline bool pods_is_one(const struct pods *p)
{
    return p->layout.n_pods == 1;
}

/* pods.c: for collectives_open: fills *c. `several`: the ranks run in several pods, or in one and cannot share memory. */
int pods_open(struct collectives *c, const struct collectives_config *cfg, bool several, int64_t timeout_ms,
              struct err *err) MUST_CHECK;
/* pods_meet.c: connect all ranks: watch, layout, the pod's ranks, then links between pods. */
int pods_meet(struct pods *p, const struct collectives_config *cfg, bool several, int64_t deadline_ms,
              struct err *err) MUST_CHECK;
/* pods_links.c: connect to lower pods, and accept the links of higher ones; fills `links`. */
int pods_join(struct pods *p, int64_t deadline_ms, struct err *err) MUST_CHECK;
/* pods_take_links: store new authenticated links in `links` and `from`, without waiting. pods_accept: first
 * wait until connections or hellos arrive, at most HOST_SLICE_MS. */
void pods_take_links(struct pods *p);
int pods_accept(struct pods *p, const char *what, int64_t deadline_ms, struct err *err) MUST_CHECK;
/* Connect to `rank` for messages; fills to[rank]. */
int pods_connect_message(struct pods *p, int rank, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods_flow.c: transfer n flows until all are done. `step` (NULL: none) is called before every round of transfers
 * and at the end, to process what arrived and to raise limits. Incoming headers must match `mine`, else
 * ERR_INVALID. */
int pods_flows(struct pods *p, struct flow *flows, int n, const struct wire_head *mine,
               void (*step)(void *ctx), void *ctx, int64_t deadline_ms, struct err *err) MUST_CHECK;
/* Wait until one of n descriptors is ready, the watch has sent a message, or HOST_SLICE_MS have passed. In
 * the last two cases check for lost peers and for the deadline. pfds has room for n + 1 entries. */
int pods_wait(struct pods *p, struct pollfd *pfds, int n, const char *what, int64_t deadline_ms,
              struct err *err) MUST_CHECK;
/* pods_take_links, then watch_look. */
int pods_look(struct pods *p, const char *what, struct err *err) MUST_CHECK;
/* The header of this rank for `call`. */
struct wire_head pods_head(const struct pods *p, const struct host_call *call);

/* pods_chain.c: `sum` of struct host_others, over all pods, by the links of this rank; arg: the struct pods. */
int pods_chain(void *arg, const struct host_call *call, const struct host_vectors *v, uint32_t *flags,
               int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods_direct.c: the direct algorithm. pods_direct_serves: whether it applies: every pod has one rank, and
 * there are at most PODS_DIRECT_MAX pods. pods_direct sums n elements at x in place. *flags is set to the OR
 * over ranks. */
enum { PODS_DIRECT_FLOWS_MAX = 4 * (PODS_DIRECT_MAX - 1) };
bool pods_direct_serves(const struct pods *p);
int pods_direct(struct pods *p, enum reduce_type type, const struct host_call *call, char *x, size_t n,
                uint32_t *flags, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods_reduce.c: compare a call without data on all ranks; also a barrier. */
int pods_agree(struct pods *p, const struct host_call *call, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods_reduce.c, pods_message.c: entries of the table. */
int pods_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                    struct err *err) MUST_CHECK;
int pods_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                        struct err *err) MUST_CHECK;
int pods_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                   struct err *err) MUST_CHECK;
int pods_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                    struct err *err) MUST_CHECK;
int pods_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
              struct err *err) MUST_CHECK;
int pods_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

#endif
