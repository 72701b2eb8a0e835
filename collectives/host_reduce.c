/* host_reduce.c - all_reduce between the ranks of one host. Three algorithms give the
 * same bits: every rank sums the whole of a small vector; vectors in a shared piece are summed in place; other
 * vectors pass through the staging halves in chunks. */
#include "collectives/host.h"
#include "collectives/reduce.h"

#include <string.h>

/* Sum part [begin, end) of all ranks' halves of `phase` into `to`. */
static void sum_halves(struct host *h, enum reduce_type type, uint32_t phase, size_t begin, size_t end,
                       void *to)
{
    const size_t size = reduce_size(type);
    void *const dst[] = {to};

    for (int r = 0; r < h->world; r++)
        h->src[r] = host_half(h, r, phase) + begin * size;
    reduce_vectors(type, dst, 1, h->src, h->world, end - begin);
}

static uint32_t gather_flags(const struct host *h, uint32_t phase)
{
    uint32_t flags = 0;

    for (int r = 0; r < h->world; r++)
        flags |= host_slot(h, r)->call[phase % 2].flags;
    return flags;
}

/* A small vector: every rank sums all of it. */
static int reduce_small(struct host *h, enum reduce_type type, const struct host_call *call, void *x,
                        uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const uint32_t phase = h->phase;

    if (call->n)
        memcpy(host_half(h, h->rank, phase), x, call->n * reduce_size(type));
    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    sum_halves(h, type, phase, 0, call->n, x);
    *flags = gather_flags(h, phase);
    return 0;
}

/* One chunk through the staging halves: each rank sums its part, then copies all parts. */
static int reduce_chunk(struct host *h, enum reduce_type type, const struct host_call *call, char *x,
                        size_t n, uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const size_t size = reduce_size(type);
    const uint32_t phase = h->phase;
    size_t begin, end;

    memcpy(host_half(h, h->rank, phase), x, n * size);
    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    if (call)
        *flags = gather_flags(h, phase);
    collectives_part(n, h->rank, h->world, &begin, &end);
    sum_halves(h, type, phase, begin, end, host_half(h, h->rank, phase + 1) + begin * size);
    if (host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < h->world; r++) {
        collectives_part(n, r, h->world, &begin, &end);
        memcpy(x + begin * size, host_half(h, r, phase + 1) + begin * size, (end - begin) * size);
    }
    return 0;
}

static int reduce_staged(struct host *h, enum reduce_type type, const struct host_call *call, void *x,
                         uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const size_t most = HOST_HALF_BYTES / reduce_size(type);

    for (size_t at = 0; at < call->n; at += most)
        if (reduce_chunk(h, type, at == 0 ? call : NULL, (char *)x + at * reduce_size(type),
                         host_least(most, call->n - at), flags, deadline_ms, err) < 0)
            return -1;
    return 0;
}

/* All ranks' vectors lie in one shared piece: sum our part in place, and write it to every rank's vector. */
static int reduce_in_place(struct host *h, const struct host_piece *piece, const struct host_call *call,
                           uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const uint32_t phase = h->phase;
    size_t begin, end;

    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    *flags = gather_flags(h, phase);
    collectives_part(call->n, h->rank, h->world, &begin, &end);
    for (int r = 0; r < h->world; r++) {
        h->dst[r] = host_piece_floats(piece, call->shared_at, r) + begin;
        h->src[r] = h->dst[r];
    }
    reduce_vectors(REDUCE_F32, h->dst, h->world, h->src, h->world, end - begin);
    return host_phase(h, NULL, deadline_ms, err);
}

int host_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                    struct err *err)
{
    struct host *h = c->state;
    const struct host_piece *piece = NULL;
    struct host_call call = {.op = HOST_ALL_REDUCE, .n = n, .has_flags = flags != NULL};
    uint32_t all = 0;
    int64_t deadline_ms;
    int rc;

    if (host_begin(h, "all_reduce", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    call.flags = flags ? *flags : 0;
    if (n <= HOST_SMALL_BYTES / sizeof(float))
        rc = reduce_small(h, REDUCE_F32, &call, x, &all, deadline_ms, err);
    else if ((call.shared_at = host_segment_find(h, x, n, &piece)) != 0)
        rc = reduce_in_place(h, piece, &call, &all, deadline_ms, err);
    else
        rc = reduce_staged(h, REDUCE_F32, &call, x, &all, deadline_ms, err);
    if (rc == 0 && flags)
        *flags = all;
    return rc;
}

int host_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct host *h = c->state;
    const struct host_call call = {.op = HOST_ALL_REDUCE_F64, .n = n};
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(h, "all_reduce_f64", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    return n <= HOST_SMALL_BYTES / sizeof(double)
               ? reduce_small(h, REDUCE_F64, &call, x, &none, deadline_ms, err)
               : reduce_staged(h, REDUCE_F64, &call, x, &none, deadline_ms, err);
}
