/* agree.c - what every call of all ranks begins with. */
#include "trainer/collectives/mpi/state.h"

#include <string.h>

static const char *op_name(uint32_t op)
{
    static const char *const names[] = {
        [MPI_CALL_REDUCE] = "all_reduce",      [MPI_CALL_REDUCE_F64] = "all_reduce_f64",
        [MPI_CALL_SCATTER] = "reduce_scatter", [MPI_CALL_BROADCAST] = "broadcast",
        [MPI_CALL_GATHER] = "all_gather",      [MPI_CALL_BARRIER] = "barrier",
        [MPI_CALL_SHARED] = "shared",          [MPI_CALL_CLOSE] = "close",
    };

    return op < ARRAY_LEN(names) && names[op] ? names[op] : "something unknown";
}

static int compare(const struct mpi *m, const char *what, struct err *err)
{
    const struct mpi_block *a = &m->blocks[0];

    for (int r = 0; r < m->world; r++)
        if (m->blocks[r].op == MPI_CALL_CLOSE)
            return err_set(err, ERR_PEER, "%s: rank %d went away", what, r);
    for (int r = 1; r < m->world; r++) {
        const struct mpi_block *b = &m->blocks[r];
        if (a->op != b->op || a->n != b->n || a->root != b->root || a->has_flags != b->has_flags ||
            a->seq != b->seq)
            return err_set(
                err, ERR_INVALID,
                "ranks disagree: rank 0 is in %s of %llu (root %u), rank %d in %s of %llu (root %u)",
                op_name(a->op), (unsigned long long)a->n, a->root, r, op_name(b->op),
                (unsigned long long)b->n, b->root);
    }
    return 0;
}

int mpi_exchange(struct mpi *m, const char *what, int64_t deadline_ms, struct err *err)
{
    const int size = (int)sizeof(m->mine);
    MPI_Request rq;

    m->mine.seq = ++m->seq;
    const int code = MPI_Iallgather(&m->mine, size, MPI_BYTE, m->blocks, size, MPI_BYTE, m->comm, &rq);
    return mpi_wait(m, code, &rq, what, deadline_ms, err);
}

int mpi_agree(struct mpi *m, const char *what, int64_t deadline_ms, struct err *err)
{
    struct err why = {0};

    if (mpi_exchange(m, what, deadline_ms, err) < 0)
        return -1;
    if (compare(m, what, &why) == 0)
        return 0;
    m->all_failed = true;
    return mpi_fail(m, &why, err);
}

int mpi_barrier(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    struct mpi *m = c->state;
    int64_t deadline_ms;

    if (mpi_begin(m, "barrier", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    m->mine = (struct mpi_block){.op = MPI_CALL_BARRIER};
    return mpi_agree(m, "barrier", deadline_ms, err);
}
