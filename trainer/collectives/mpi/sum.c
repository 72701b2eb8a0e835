/* sum.c - sums in rank order: few numbers travel with the blocks and everyone adds; of more, each rank takes its part from
 * all, adds it, and all parts are collected where they belong. */
#include "trainer/collectives/mpi/state.h"

#include <string.h>

struct sum {
    struct mpi *m;
    enum reduce_type type;
    const char *what;
    int64_t deadline_ms;
    bool scatter; /* our part of the whole is enough */
    size_t n;     /* of the whole */
};

static void sum_inline(struct sum *s, char *x)
{
    struct mpi *m = s->m;
    void *dst = x;

    for (int r = 0; r < m->world; r++)
        m->src[r] = m->blocks[r].data;
    reduce_vectors(s->type, &dst, 1, m->src, m->world, s->n);
}

/* [begin, end): rank r's part of the chunk of n elements at `at`. In a scatter that is what of its part of the whole lies
 * in the chunk. */
static void part_of(const struct sum *s, size_t at, size_t n, int r, size_t *begin, size_t *end)
{
    if (!s->scatter) {
        collectives_part(n, r, s->m->world, begin, end);
        return;
    }
    collectives_part(s->n, r, s->m->world, begin, end);
    *begin = *begin < at ? 0 : *begin > at + n ? n : *begin - at;
    *end = *end < at ? 0 : *end > at + n ? n : *end - at;
}

static int sum_chunk(struct sum *s, char *x, size_t at, size_t n, struct err *err)
{
    struct mpi *m = s->m;
    const size_t size = reduce_size(s->type);
    size_t begin, end, own_begin, own_end;
    MPI_Request rq;

    part_of(s, at, n, m->rank, &own_begin, &own_end);
    const size_t own = (own_end - own_begin) * size;
    for (int r = 0; r < m->world; r++) {
        part_of(s, at, n, r, &begin, &end);
        m->send_at[r] = (int)(begin * size);
        m->send_counts[r] = (int)((end - begin) * size);
        m->recv_at[r] = (int)((size_t)r * own);
        m->recv_counts[r] = (int)own;
        m->src[r] = m->area + (size_t)r * own;
    }
    int code = MPI_Ialltoallv(x, m->send_counts, m->send_at, MPI_BYTE, m->area, m->recv_counts, m->recv_at,
                              MPI_BYTE, m->comm, &rq);
    if (mpi_wait(m, code, &rq, s->what, s->deadline_ms, err) < 0)
        return -1;
    void *dst = x + own_begin * size;
    reduce_vectors(s->type, &dst, 1, m->src, m->world, own_end - own_begin);
    if (s->scatter)
        return 0;
    code = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, m->send_counts, m->send_at, MPI_BYTE,
                           m->comm, &rq);
    return mpi_wait(m, code, &rq, s->what, s->deadline_ms, err);
}

/* m->mine is ready but for the numbers. A scatter's chunk may be one rank's alone, which then takes all of it. */
static int sum(struct sum *s, void *x, struct err *err)
{
    const size_t size = reduce_size(s->type), bytes = s->n * size;
    const size_t most = MPI_CHUNK_BYTES / size / (s->scatter ? (size_t)s->m->world : 1);

    if (bytes <= MPI_INLINE_BYTES && bytes)
        memcpy(s->m->mine.data, x, bytes);
    if (mpi_agree(s->m, s->what, s->deadline_ms, err) < 0)
        return -1;
    if (bytes <= MPI_INLINE_BYTES) {
        sum_inline(s, x);
        return 0;
    }
    for (size_t at = 0; at < s->n; at += most)
        if (sum_chunk(s, (char *)x + at * size, at, s->n - at < most ? s->n - at : most, err) < 0)
            return -1;
    return 0;
}

int mpi_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                   struct err *err)
{
    struct mpi *m = c->state;
    struct sum s = {.m = m, .type = REDUCE_F32, .what = "all_reduce", .n = n};

    if (mpi_begin(m, s.what, timeout_ms, &s.deadline_ms, err) < 0)
        return -1;
    m->mine = (struct mpi_block){
        .op = MPI_CALL_REDUCE, .n = n, .flags = flags ? *flags : 0, .has_flags = flags != NULL};
    if (sum(&s, x, err) < 0)
        return -1;
    for (int r = 0; flags && r < m->world; r++)
        *flags |= m->blocks[r].flags;
    return 0;
}

int mpi_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct sum s = {.m = c->state, .type = REDUCE_F64, .what = "all_reduce_f64", .n = n};

    if (mpi_begin(s.m, s.what, timeout_ms, &s.deadline_ms, err) < 0)
        return -1;
    s.m->mine = (struct mpi_block){.op = MPI_CALL_REDUCE_F64, .n = n};
    return sum(&s, x, err);
}

int mpi_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct sum s = {.m = c->state, .type = REDUCE_F32, .what = "reduce_scatter", .n = n, .scatter = true};

    if (mpi_begin(s.m, s.what, timeout_ms, &s.deadline_ms, err) < 0)
        return -1;
    s.m->mine = (struct mpi_block){.op = MPI_CALL_SCATTER, .n = n};
    return sum(&s, x, err);
}
