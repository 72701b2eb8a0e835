/* host_reduce.c - all_reduce between the ranks of one host. Three algorithms give the same bits: every rank sums the whole of a
 * small vector; vectors in a shared piece are summed in place; other vectors pass through the staging halves
 * in chunks. With several pods, the last two also apply: the first ranks of each pod, which have links, sum
 * one part each. */
#include "collectives/host.h"

#include <string.h>

/* The OR of all ranks' flags in `phase`. */
static uint32_t gather_flags(const struct host *h, uint32_t phase)
{
    uint32_t flags = 0;

    for (int r = 0; r < h->world; r++)
        flags |= host_slot(h, r)->call[phase % 2].flags;
    return flags;
}

/* A small vector: every rank sums all of it. */
int host_reduce_small(struct host *h, enum reduce_type type, const struct host_call *call, void *x, size_t n,
                      uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const uint32_t phase = h->phase;

    if (n)
        memcpy(host_half(h, h->rank, phase), x, n * reduce_size(type));
    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < h->world; r++)
        h->src[r] = host_half(h, r, phase);
    reduce_vectors(type, &x, 1, h->src, h->world, n);
    *flags = gather_flags(h, phase);
    return 0;
}

/* How many ranks sum a part each. */
static int parts(const struct host *h)
{
    return h->others.sum ? h->others.parts : h->world;
}

/* Sum this rank's part of n elements of all ranks' vectors (h->src), and of those of other hosts, into h->dst[0..n_dst). */
static int sum_part(struct host *h, enum reduce_type type, const struct host_call *call, size_t n, int n_dst,
                    uint32_t phase, int64_t deadline_ms, struct err *err)
{
    const size_t size = reduce_size(type);
    size_t begin, end;

    if (h->rank >= parts(h))
        return 0;
    collectives_part(n, h->rank, parts(h), &begin, &end);
    if (begin == end && h->rank > 0) /* rank 0's part carries the flags */
        return 0;
    for (int r = 0; r < h->world; r++)
        h->src[r] = (const char *)h->src[r] + begin * size;
    for (int d = 0; d < n_dst; d++)
        h->dst[d] = (char *)h->dst[d] + begin * size;
    const struct host_vectors v = {type, (end - begin) * size, h->src, h->dst, n_dst};
    uint32_t flags = h->rank == 0 ? gather_flags(h, phase) : 0;

    if (!h->others.sum)
        reduce_vectors(type, h->dst, n_dst, h->src, h->world, end - begin);
    else if (h->others.sum(h->others.arg, call, &v, &flags, deadline_ms, err) < 0)
        return host_fail(h, err);
    if (h->rank == 0) /* the next phase repeats the call with these flags, and all ranks read them there */
        host_slot(h, 0)->call[phase % 2].flags = flags;
    return 0;
}

/* One chunk through the staging halves: ranks sum a part each, then copy all parts. */
static int reduce_chunk(struct host *h, enum reduce_type type, const struct host_call *call, bool first,
                        char *x, size_t n, int64_t deadline_ms, struct err *err)
{
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
    if (sum_part(h, type, call, n, 1, phase, deadline_ms, err) < 0 ||
        host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < parts(h); r++) {
        collectives_part(n, r, parts(h), &begin, &end);
        if (end > begin)
            memcpy(x + begin * size, host_half(h, r, phase + 1) + begin * size, (end - begin) * size);
    }
    return 0;
}

int host_reduce(struct host *h, enum reduce_type type, const struct host_call *call, void *x, size_t n,
                uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const size_t size = reduce_size(type), most = HOST_HALF_BYTES / size;

    for (size_t at = 0; at < n || at == 0; at += most) {
        if (reduce_chunk(h, type, call, at == 0, (char *)x + at * size, host_least(most, n - at), deadline_ms,
                         err) < 0)
            return -1;
        if (at == 0)
            *flags = host_slot(h, 0)->call[(h->phase - 1) % 2].flags;
    }
    return 0;
}

int host_reduce_in_place(struct host *h, const struct host_piece *piece, const struct host_call *call,
                         uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const uint32_t phase = h->phase;

    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < h->world; r++)
        h->src[r] = h->dst[r] = host_piece_floats(piece, call->shared_at, r);
    if (sum_part(h, REDUCE_F32, call, call->n, h->world, phase, deadline_ms, err) < 0 ||
        host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    *flags = host_slot(h, 0)->call[(phase + 1) % 2].flags;
    return 0;
}
