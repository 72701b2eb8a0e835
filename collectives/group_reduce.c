/* group_reduce.c - all_reduce and reduce_scatter over a group: each member sums its own part, slice by slice,
 * and sends the sum to the others. */
#include "collectives/group_state.h"
#include "collectives/reduce.h"

/* [*begin, *end) of the slice at `at` of member p's part of n elements; empty when the part ends before. */
static void slice_of(const struct group *g, size_t n, int p, size_t at, size_t *begin, size_t *end)
{
    collectives_part(n, p, g->n, begin, end);
    *begin = *begin + at < *end ? *begin + at : *end;
    if (*end - *begin > g->slice)
        *end = *begin + g->slice;
}

/* One slice of every member's part: sum our own, then, unless `scatter`, exchange the sums. */
static int reduce_slices(struct group *g, enum reduce_type type, char *x, size_t n, size_t at, bool scatter,
                         int64_t deadline_ms, struct err *err)
{
    const size_t size = reduce_size(type);
    size_t begin, end, from, to;

    slice_of(g, n, g->me, at, &begin, &end);
    for (int p = 0; p < g->n; p++) {
        char *theirs = g->scratch + (size_t)p * g->slice * size;
        slice_of(g, n, p, at, &from, &to);
        g->src[p] = p == g->me ? x + begin * size : theirs;
        if (p != g->me && group_swap(g, p, x + from * size, (to - from) * size, theirs, (end - begin) * size,
                                     deadline_ms, err))
            return -1;
    }
    void *const mine[] = {x + begin * size};
    reduce_vectors(type, mine, 1, g->src, g->n, end - begin);
    for (int p = 0; p < g->n && !scatter; p++) {
        slice_of(g, n, p, at, &from, &to);
        if (p != g->me && group_swap(g, p, x + begin * size, (end - begin) * size, x + from * size,
                                     (to - from) * size, deadline_ms, err))
            return -1;
    }
    return 0;
}

static int reduce_all(struct group *g, enum reduce_type type, void *x, size_t n, bool scatter,
                      int64_t deadline_ms, struct err *err)
{
    size_t longest = 0;

    for (int p = 0; p < g->n; p++) {
        size_t begin, end;
        collectives_part(n, p, g->n, &begin, &end);
        longest = end - begin > longest ? end - begin : longest;
    }
    for (size_t at = 0; at < longest && g->n > 1; at += g->slice)
        if (reduce_slices(g, type, x, n, at, scatter, deadline_ms, err))
            return group_fail(g, err);
    return 0;
}

int group_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                     struct err *err)
{
    struct group *g = c->state;
    int64_t deadline_ms;

    return group_begin(g, GROUP_ALL_REDUCE, n, 0, flags, timeout_ms, &deadline_ms, err)
               ? -1
               : reduce_all(g, REDUCE_F32, x, n, false, deadline_ms, err);
}

int group_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct group *g = c->state;
    int64_t deadline_ms;

    return group_begin(g, GROUP_ALL_REDUCE_F64, n, 0, NULL, timeout_ms, &deadline_ms, err)
               ? -1
               : reduce_all(g, REDUCE_F64, x, n, false, deadline_ms, err);
}

int group_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct group *g = c->state;
    int64_t deadline_ms;

    return group_begin(g, GROUP_REDUCE_SCATTER, n, 0, NULL, timeout_ms, &deadline_ms, err)
               ? -1
               : reduce_all(g, REDUCE_F32, x, n, true, deadline_ms, err);
}
