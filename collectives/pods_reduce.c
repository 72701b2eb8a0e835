/* pods_reduce.c - all_reduce and reduce_scatter over the ranks of several pods: choose the algorithm, all of
 * which give the same bits. Small vectors are exchanged between leaders (pods_small.c); with one rank per pod
 * each rank sums a part (pods_direct.c); the rest use the chain (pods_chain.c), in place for vectors in a shared
 * piece, otherwise in chunks through the staging halves. */
#include "collectives/pods.h"
#include "collectives/reduce.h"

#include <string.h>

/* Sum our lane's part of a chunk, from the halves of `phase` to our half of the next phase. */
static int chain_halves(struct pods *p, enum reduce_type type, const struct host_call *call, size_t n,
                        uint32_t phase, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const size_t size = reduce_size(type);
    size_t begin, end;

    if (p->lane < 0)
        return 0;
    collectives_part(n, p->lane, p->layout.lanes, &begin, &end);
    if (begin == end && p->lane > 0)
        return 0;
    for (int r = 0; r < h->world; r++)
        h->src[r] = host_half(h, r, phase) + begin * size;
    void *dst = host_half(h, h->rank, phase + 1) + begin * size;
    const size_t bytes = (end - begin) * size;
    const struct chain_part part = {.reduce_type = (int)type,
                                    .bytes = bytes,
                                    .back_in = bytes,
                                    .back_out = bytes,
                                    .src = h->src,
                                    .dst = &dst,
                                    .n_dst = 1};
    uint32_t flags = pods_local_flags(h, phase);
    if (pods_chain(p, call, &part, &flags, deadline_ms, err) < 0)
        return -1;
    if (h->rank == 0)
        pods_give_flags(h, phase, flags);
    return 0;
}

static int reduce_chunk(struct pods *p, enum reduce_type type, const struct host_call *call, bool first,
                        char *x, size_t n, uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const size_t size = reduce_size(type);
    const uint32_t phase = h->phase;
    size_t begin, end;
    struct err why = {0};

    if (n)
        memcpy(host_half(h, h->rank, phase), x, n * size);
    if (host_phase(h, first ? call : NULL, deadline_ms, err) < 0)
        return -1;
    if (chain_halves(p, type, call, n, phase, deadline_ms, &why) < 0)
        return pods_fail(p, &why, err);
    if (host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    if (first)
        *flags = pods_taken_flags(h, phase + 1);
    for (int lane = 0; lane < p->layout.lanes; lane++) {
        collectives_part(n, lane, p->layout.lanes, &begin, &end);
        if (end > begin)
            memcpy(x + begin * size, host_half(h, lane, phase + 1) + begin * size, (end - begin) * size);
    }
    return 0;
}

static int reduce_staged(struct pods *p, enum reduce_type type, const struct host_call *call, void *x,
                         uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const size_t most = HOST_HALF_BYTES / reduce_size(type);

    for (size_t at = 0; at < call->n || at == 0; at += most)
        if (reduce_chunk(p, type, call, at == 0, (char *)x + at * reduce_size(type),
                         host_least(most, call->n - at), flags, deadline_ms, err) < 0)
            return -1;
    return 0;
}

/* How many elements of [begin, end) come before the parts that pod `pod` owns: reduce_scatter sends only these
 * back past that pod, because the pods before it own nothing further. */
static size_t before_pod(const struct pods *p, const struct host_call *call, int pod, size_t begin,
                         size_t end)
{
    size_t from, to;

    if (pod == p->layout.n_pods)
        return end - begin;
    collectives_part(call->n, p->layout.first[pod], p->world, &from, &to);
    return from <= begin ? 0 : from >= end ? end - begin : from - begin;
}

/* All ranks' vectors lie in one shared piece of their pod: sum our lane's part in place. */
static int chain_piece(struct pods *p, const struct host_piece *piece, const struct host_call *call,
                       bool scatter, uint32_t phase, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const size_t at = (size_t)(call->place & (((uint64_t)1 << 48) - 1));
    size_t begin, end;

    if (p->lane < 0)
        return 0;
    collectives_part(call->n, p->lane, p->layout.lanes, &begin, &end);
    if (begin == end && p->lane > 0)
        return 0;
    for (int r = 0; r < h->world; r++)
        h->src[r] = p->dst[r] = piece->base + (size_t)r * piece->stride + (at + begin) * sizeof(float);
    void *own = p->dst[h->rank];
    p->dst[h->rank] = p->dst[0];
    p->dst[0] = own;
    const size_t size = sizeof(float), all = end - begin;
    const struct chain_part part = {
        .reduce_type = REDUCE_F32,
        .bytes = all * size,
        .back_in = (scatter ? before_pod(p, call, p->pod + 1, begin, end) : all) * size,
        .back_out = (scatter ? before_pod(p, call, p->pod, begin, end) : all) * size,
        .src = h->src,
        .dst = p->dst,
        .n_dst = h->world};
    uint32_t flags = pods_local_flags(h, phase);
    if (pods_chain(p, call, &part, &flags, deadline_ms, err) < 0)
        return -1;
    if (h->rank == 0)
        pods_give_flags(h, phase, flags);
    return 0;
}

static int reduce_in_place(struct pods *p, const struct host_piece *piece, const struct host_call *call,
                           bool scatter, uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const uint32_t phase = h->phase;
    struct err why = {0};

    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    if (chain_piece(p, piece, call, scatter, phase, deadline_ms, &why) < 0)
        return pods_fail(p, &why, err);
    if (host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    *flags = pods_taken_flags(h, phase + 1);
    return 0;
}

/* With one rank per pod no memory is shared, so there are no phases. */
static int reduce_direct(struct pods *p, enum reduce_type type, const struct host_call *call, void *x,
                         bool scatter, uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    struct err why = {0};

    if (pods_direct(p, (int)type, call, x, scatter, flags, deadline_ms, &why) < 0)
        return pods_fail(p, &why, err);
    return 0;
}

int pods_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                    struct err *err)
{
    struct pods *p = c->state;
    const struct host_piece *piece = NULL;
    struct host_call call = {.op = HOST_ALL_REDUCE, .n = n, .has_flags = flags != NULL};
    uint32_t all = 0;
    int64_t deadline_ms;
    int rc;

    if (host_begin(p->host, "all_reduce", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    call.flags = flags ? *flags : 0;
    if (pods_is_small(p, n * sizeof(float)))
        rc = pods_reduce_small(p, REDUCE_F32, &call, x, &all, deadline_ms, err);
    else if ((call.place = host_segment_place(p->host, x, n, &piece), pods_direct_serves(p)))
        rc = reduce_direct(p, REDUCE_F32, &call, x, false, &all, deadline_ms, err);
    else if (piece)
        rc = reduce_in_place(p, piece, &call, false, &all, deadline_ms, err);
    else
        rc = reduce_staged(p, REDUCE_F32, &call, x, &all, deadline_ms, err);
    if (rc == 0 && flags)
        *flags = all;
    return rc;
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
    if (pods_is_small(p, n * sizeof(double)))
        return pods_reduce_small(p, REDUCE_F64, &call, x, &none, deadline_ms, err);
    if (pods_direct_serves(p))
        return reduce_direct(p, REDUCE_F64, &call, x, false, &none, deadline_ms, err);
    return reduce_staged(p, REDUCE_F64, &call, x, &none, deadline_ms, err);
}

int pods_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct pods *p = c->state;
    const struct host_piece *piece = NULL;
    struct host_call call = {.op = HOST_REDUCE_SCATTER, .n = n};
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(p->host, "reduce_scatter", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    call.place = host_segment_place(p->host, x, n, &piece);
    if (pods_direct_serves(p))
        return reduce_direct(p, REDUCE_F32, &call, x, true, &none, deadline_ms, err);
    return piece ? reduce_in_place(p, piece, &call, true, &none, deadline_ms, err)
                 : reduce_staged(p, REDUCE_F32, &call, x, &none, deadline_ms, err);
}
