/* pods.h - ranks of several pods: shared memory inside each (host.h), TCP between them.
 *
 * Order:     a sum over all ranks must be 0 + 1 + 2 + ..., so it travels: the first pod adds its ranks' numbers and hands
 *            the partial sum to the next, which adds its own; from the last pod the result comes back the same way. All
 *            of that streams, so that it takes a vector's time once, not once per pod, and every link carries the
 *            vector once each way, about what a ring would. Small vectors are not summed on the way: the pods' leaders
 *            hand all ranks' numbers to each other at once, and everyone adds. When every pod is one rank, each adds its part
 *            of the vector for all (pods_direct.c).
 * Lanes:     rank i of a pod is joined to rank i of the next one, and each pair carries its part of a vector.
 * Ownership: struct pods owns all that it points to.
 * Errors:    those of collectives.h. The first failure stays, in the host part.
 */
#ifndef TK_COLLECTIVES_PODS_H
#define TK_COLLECTIVES_PODS_H

#include "collectives/host.h"
#include "collectives/layout.h"
#include "collectives/watch.h"
#include "collectives/watch_server.h"
#include "rendezvous/server.h"

#include <poll.h>

enum {
    PODS_LEADERS_MAX = 16,         /* so many leaders are joined each to each */
    PODS_SMALL_BYTES = 16 * 1024,  /* of one vector */
    PODS_AREA_BYTES = 512 * 1024,  /* of all ranks' vectors in an exchange */
    PODS_BLOCK_BYTES = 128 * 1024, /* how far the first pod sums ahead of what it has sent */
    PODS_PENDING_MAX = 64,         /* connections whose hello has not come yet */
};

/* Operations beyond host.h's, on the wire only. */
enum { PODS_MESSAGE = 64 };

/* What goes before the bytes of every call on every link. In the machine's order, as the watch has checked. */
struct wire_head {
    uint32_t magic;
    uint32_t from;
    uint64_t seq;
    uint64_t n, place;
    uint32_t op, root, flags, has_flags;
};

/* One direction of a link during one call: a head, then len bytes, as far as `limit` says for now. */
struct flow {
    int fd, peer;
    bool out, ready; /* out: its head is filled in */
    struct wire_head head;
    size_t head_at;
    char *buf; /* holds the bytes from `skip` on */
    size_t skip, at, limit, len;
};

struct pending {
    int fd;
    int64_t came_ms;
};

struct pods {
    int rank, world;
    struct host *host;
    struct layout layout;
    int pod;    /* ours */
    int lane;   /* ours, or -1 */
    bool apart; /* the ranks of our pod cannot share memory: each is one by itself */
    struct watch watch;
    uint8_t token[WATCH_TOKEN_BYTES];
    struct store_server *store;  /* rank 0 */
    struct watch_server *server; /* rank 0 */
    int listener;
    struct pending pending[PODS_PENDING_MAX];
    int n_pending;
    uint32_t unauthenticated;
    int *links;       /* [n_pods] our lane's, -1: none */
    int *from, *to;   /* [world] for messages, -1: none yet */
    char *area;       /* PODS_AREA_BYTES */
    const void **src; /* [world + 1] scratch */
    void **dst;
};

static inline bool flow_has_head(const struct flow *f)
{
    return f->head_at == sizeof(f->head);
}

/* pods_meet.c: store, watch, layout, host, then links. */
int pods_meet(struct pods *p, const struct collectives_config *cfg, int64_t deadline_ms,
              struct err *err) MUST_CHECK;
/* pods_links.c: the links to other pods, made and taken in. */
int pods_join_lanes(struct pods *p, int64_t deadline_ms, struct err *err) MUST_CHECK;
/* Sleep until connections or hellos come, and take them in. */
int pods_accept(struct pods *p, const char *what, int64_t deadline_ms, struct err *err) MUST_CHECK;
/* A link to rank `rank` for messages. */
int pods_connect_message(struct pods *p, int rank, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods_flow.c: run n flows until all are done. `step` is called after each progress: it moves limits on. `mine` is what
 * incoming heads are compared with. */
int pods_flows(struct pods *p, struct flow *flows, int n, const struct wire_head *mine,
               void (*step)(void *ctx), void *ctx, int64_t deadline_ms, struct err *err) MUST_CHECK;
/* Sleep until one of n descriptors is ready, or for a slice of time; then: are all still there, is there time left?
 * pfds has room for one more. */
int pods_wait(struct pods *p, struct pollfd *pfds, int n, const char *what, int64_t deadline_ms,
              struct err *err) MUST_CHECK;
const char *pods_op_name(uint32_t op);
struct wire_head pods_head(const struct pods *p, const struct host_call *call);

/* pods_chain.c: one lane's part of a sum, of `bytes` bytes. src: our pod's vectors at that part, in rank order; dst: where
 * the result goes, dst[0] written first and may be one of src. back_in, back_out: how much of the result, from its start,
 * the next pod hands to us and we to the one before. *flags: ours in, all pods' out. */
struct chain_part {
    int reduce_type;
    size_t bytes, back_in, back_out;
    const void **src;
    void **dst;
    int n_dst;
};
int pods_chain(struct pods *p, const struct host_call *call, const struct chain_part *part, uint32_t *flags,
               int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods_direct.c: the sum of x over ranks that are each a pod, in place; may it be taken so? `scatter`: our part only. */
enum { PODS_DIRECT_FLOWS_MAX = 4 * (PODS_LEADERS_MAX - 1) };
bool pods_direct_serves(const struct pods *p);
int pods_direct(struct pods *p, int reduce_type, const struct host_call *call, void *x, bool scatter,
                uint32_t *flags, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods.c: update the table's count of unauthenticated connections. */
void pods_count_unauthenticated(struct collectives *c);

/* The flags that our pod's ranks raise in the call that they described in `phase`. */
static inline uint32_t pods_local_flags(const struct host *h, uint32_t phase)
{
    uint32_t flags = 0;

    for (int r = 0; r < h->world; r++)
        flags |= host_slot(h, r)->call[phase % 2].flags;
    return flags;
}

/* The leader tells its pod the flags of all: in the description of the phase to come, which repeats this one. */
static inline void pods_give_flags(struct host *h, uint32_t phase, uint32_t flags)
{
    host_slot(h, h->rank)->call[phase % 2].flags = flags;
}

static inline uint32_t pods_taken_flags(const struct host *h, uint32_t phase)
{
    return host_slot(h, 0)->call[phase % 2].flags;
}

/* Keep a failure for all later calls, and hand it on. Always -1. */
static inline int pods_fail(struct pods *p, const struct err *why, struct err *err)
{
    *err = *why;
    return host_fail(p->host, why);
}

/* pods_small.c: may so many bytes be summed without a row? Then so; flags: all ranks'. */
bool pods_is_small(const struct pods *p, size_t bytes);
int pods_reduce_small(struct pods *p, int reduce_type, const struct host_call *call, void *x, uint32_t *flags,
                      int64_t deadline_ms, struct err *err) MUST_CHECK;

/* All ranks agree on a call without data. */
int pods_agree(struct pods *p, const struct host_call *call, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* pods_reduce.c, pods_spread.c, pods_message.c: the table's entries. */
int pods_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                    struct err *err) MUST_CHECK;
int pods_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                        struct err *err) MUST_CHECK;
int pods_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms,
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
