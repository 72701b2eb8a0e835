/* pods_reduce.c - the collectives over several pods. All are sums: of bytes, of which all but one rank's are 0, the OR is
 * a broadcast or an all_gather. With one rank per pod the ranks exchange their vectors directly (pods_direct.c). Else the
 * first ranks of each pod, which have links, sum a part each, of their pod's vectors and those of the others, along the
 * chain of pods (pods_chain.c), in place for vectors in a shared piece, otherwise in chunks through the staging halves. */
#include "collectives/pods.h"

#include <string.h>

/* A rank with links: sum its part of n elements of its pod's vectors (h->src) and all other pods', into the same part of
 * h->dst[0..n_dst). A rank without: nothing. */
static int sum_part(struct pods *p, enum reduce_type type, const struct host_call *call, size_t n, int n_dst,
                    uint32_t phase, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const size_t size = reduce_size(type);
    size_t begin, end;

    if (h->rank >= p->layout.lanes)
        return 0;
    collectives_part(n, h->rank, p->layout.lanes, &begin, &end);
    if (begin == end && h->rank > 0) /* rank 0's carries the flags */
        return 0;
    for (int r = 0; r < h->world; r++)
        h->src[r] = (const char *)h->src[r] + begin * size;
    for (int d = 0; d < n_dst; d++)
        h->dst[d] = (char *)h->dst[d] + begin * size;
    const struct chain_vectors v = {
        .type = type, .bytes = (end - begin) * size, .src = h->src, .dst = h->dst, .n_dst = n_dst};
    struct err why = {0};
    uint32_t flags = 0;

    for (int r = 0; h->rank == 0 && r < h->world; r++)
        flags |= host_slot(h, r)->call[phase % 2].flags;
    if (pods_chain(p, call, &v, &flags, deadline_ms, &why) < 0) {
        *err = why;
        return host_fail(h, &why);
    }
    if (h->rank == 0) /* the next phase repeats its call: the pod's ranks read the flags of all there */
        host_slot(h, 0)->call[phase % 2].flags = flags;
    return 0;
}

static uint32_t flags_of_all(const struct host *h, uint32_t phase)
{
    return host_slot(h, 0)->call[phase % 2].flags;
}

static int reduce_chunk(struct pods *p, enum reduce_type type, const struct host_call *call, bool first,
                        char *x, size_t n, uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const uint32_t phase = h->phase;
    const size_t size = reduce_size(type);
    size_t begin, end;

    if (n)
        memcpy(host_half(h, h->rank, phase), x, n * size);
    if (host_phase(h, first ? call : NULL, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < h->world; r++)
        h->src[r] = host_half(h, r, phase);
    h->dst[0] = host_half(h, h->rank, phase + 1);
    if (sum_part(p, type, call, n, 1, phase, deadline_ms, err) < 0 ||
        host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    for (int lane = 0; lane < p->layout.lanes; lane++) {
        collectives_part(n, lane, p->layout.lanes, &begin, &end);
        if (end > begin)
            memcpy(x + begin * size, host_half(h, lane, phase + 1) + begin * size, (end - begin) * size);
    }
    if (first)
        *flags = flags_of_all(h, phase + 1);
    return 0;
}

/* All ranks' vectors lie in one shared piece of their pod. */
static int reduce_in_place(struct pods *p, const struct host_piece *piece, const struct host_call *call,
                           uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const uint32_t phase = h->phase;

    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < h->world; r++)
        h->src[r] = h->dst[r] = host_piece_floats(piece, call->shared_at, r);
    if (sum_part(p, REDUCE_F32, call, call->n, h->world, phase, deadline_ms, err) < 0 ||
        host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    *flags = flags_of_all(h, phase + 1);
    return 0;
}

/* Sum n elements at x over all ranks, and OR the flags of their calls. */
static int reduce(struct pods *p, enum reduce_type type, const struct host_call *call, void *x, size_t n,
                  uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const size_t size = reduce_size(type), most = HOST_HALF_BYTES / size;
    struct err why = {0};

    if (pods_direct_serves(p)) {
        if (pods_direct(p, type, call, x, n, flags, deadline_ms, &why) == 0)
            return 0;
        *err = why;
        return host_fail(p->host, &why);
    }
    for (size_t at = 0; at < n || at == 0; at += most)
        if (reduce_chunk(p, type, call, at == 0, (char *)x + at * size, host_least(most, n - at), flags,
                         deadline_ms, err) < 0)
            return -1;
    return 0;
}

int pods_agree(struct pods *p, const struct host_call *call, int64_t deadline_ms, struct err *err)
{
    char nothing = 0;
    uint32_t none;

    return reduce(p, REDUCE_OR, call, &nothing, 0, &none, deadline_ms, err);
}

int pods_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                    struct err *err)
{
    struct pods *p = c->state;
    const struct host_piece *piece = NULL;
    struct host_call call = {.op = HOST_ALL_REDUCE, .n = n, .has_flags = flags != NULL};
    uint32_t all = 0;
    int64_t deadline_ms;

    if (host_begin(p->host, "all_reduce", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    call.flags = flags ? *flags : 0;
    if (n > HOST_SMALL_BYTES / sizeof(float))
        call.shared_at = host_segment_find(p->host, x, n, &piece);
    if (piece && !pods_direct_serves(p) ? reduce_in_place(p, piece, &call, &all, deadline_ms, err)
                                        : reduce(p, REDUCE_F32, &call, x, n, &all, deadline_ms, err))
        return -1;
    if (flags)
        *flags = all;
    return 0;
}

int pods_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_ALL_REDUCE_F64, .n = n};
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(p->host, "all_reduce_f64", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    return reduce(p, REDUCE_F64, &call, x, n, &none, deadline_ms, err);
}

int pods_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                   struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_BROADCAST, .n = len, .root = (uint32_t)root};
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(p->host, "broadcast", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (root < 0 || root >= p->world)
        return err_set(err, ERR_INVALID, "broadcast: root %d: expected 0..%d", root, p->world - 1);
    watch_enter(&p->watch, false);
    if (len && p->rank != root)
        memset(bytes, 0, len);
    return reduce(p, REDUCE_OR, &call, bytes, len, &none, deadline_ms, err);
}

int pods_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                    struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_ALL_GATHER, .n = len};
    const size_t before = (size_t)p->rank * len, bytes = (size_t)p->world * len;
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(p->host, "all_gather", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    if (len) {
        memmove((char *)all + before, mine, len);
        memset(all, 0, before);
        memset((char *)all + before + len, 0, bytes - before - len);
    }
    return reduce(p, REDUCE_OR, &call, all, bytes, &none, deadline_ms, err);
}
