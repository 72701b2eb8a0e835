/* move.c - bytes from one rank to all, from all to all, from one to one. */
#include "trainer/collectives/mpi/state.h"

#include <string.h>

enum { TAG_LENGTH = 1, TAG_BYTES };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

int mpi_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                  struct err *err)
{
    struct mpi *m = c->state;
    const char *what = "broadcast";
    int64_t deadline_ms;

    if (mpi_begin(m, what, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (root < 0 || root >= m->world)
        return err_set(err, ERR_INVALID, "broadcast: root %d: expected 0..%d", root, m->world - 1);
    m->mine = (struct mpi_block){.op = MPI_CALL_BROADCAST, .n = len, .root = (uint32_t)root};
    if (mpi_agree(m, what, deadline_ms, err) < 0)
        return -1;
    for (size_t at = 0; at < len; at += MPI_MOST_BYTES) {
        MPI_Request rq;
        const int code = MPI_Ibcast((char *)bytes + at, (int)least(MPI_MOST_BYTES, len - at), MPI_BYTE, root,
                                    m->comm, &rq);
        if (mpi_wait(m, code, &rq, what, deadline_ms, err) < 0)
            return -1;
    }
    return 0;
}

int mpi_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                   struct err *err)
{
    struct mpi *m = c->state;
    const size_t most = MPI_CHUNK_BYTES / (size_t)m->world;
    int64_t deadline_ms;

    if (mpi_begin(m, "all_gather", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    m->mine = (struct mpi_block){.op = MPI_CALL_GATHER, .n = len};
    if (mpi_agree(m, "all_gather", deadline_ms, err) < 0)
        return -1;
    for (size_t at = 0; at < len; at += most) {
        const size_t n = least(most, len - at);
        MPI_Request rq;
        const int code = MPI_Iallgather((const char *)mine + at, (int)n, MPI_BYTE, m->area, (int)n, MPI_BYTE,
                                        m->comm, &rq);
        if (mpi_wait(m, code, &rq, "all_gather", deadline_ms, err) < 0)
            return -1;
        for (int r = 0; r < m->world; r++)
            memcpy((char *)all + (size_t)r * len + at, m->area + (size_t)r * n, n);
    }
    return 0;
}

static int begin_message(struct mpi *m, const char *what, int rank, int64_t timeout_ms, int64_t *deadline_ms,
                         struct err *err)
{
    if (mpi_begin(m, what, timeout_ms, deadline_ms, err) < 0)
        return -1;
    if (rank < 0 || rank >= m->world || rank == m->rank)
        return err_set(err, ERR_INVALID, "%s: rank %d: expected another rank of 0..%d", what, rank,
                       m->world - 1);
    return 0;
}

int mpi_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
             struct err *err)
{
    struct mpi *m = c->state;
    const uint64_t size = len;
    int64_t deadline_ms;
    MPI_Request rq;

    if (begin_message(m, "send", to, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    int code = MPI_Isend(&size, sizeof(size), MPI_BYTE, to, TAG_LENGTH, m->comm, &rq);
    if (mpi_wait(m, code, &rq, "send", deadline_ms, err) < 0)
        return -1;
    for (size_t at = 0; at < len; at += MPI_MOST_BYTES) {
        code = MPI_Isend((const char *)bytes + at, (int)least(MPI_MOST_BYTES, len - at), MPI_BYTE, to,
                         TAG_BYTES, m->comm, &rq);
        if (mpi_wait(m, code, &rq, "send", deadline_ms, err) < 0)
            return -1;
    }
    return 0;
}

int mpi_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms, struct err *err)
{
    struct mpi *m = c->state;
    uint64_t size = 0;
    int64_t deadline_ms;
    MPI_Request rq;

    if (begin_message(m, "recv", from, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    int code = MPI_Irecv(&size, sizeof(size), MPI_BYTE, from, TAG_LENGTH, m->comm, &rq);
    if (mpi_wait(m, code, &rq, "recv", deadline_ms, err) < 0)
        return -1;
    if (size != len) {
        struct err why = {0};
        err_set(&why, ERR_INVALID, "ranks disagree: rank %d sends %llu bytes, rank %d expects %zu", from,
                (unsigned long long)size, m->rank, len);
        return mpi_fail(m, &why, err);
    }
    for (size_t at = 0; at < len; at += MPI_MOST_BYTES) {
        code = MPI_Irecv((char *)bytes + at, (int)least(MPI_MOST_BYTES, len - at), MPI_BYTE, from, TAG_BYTES,
                         m->comm, &rq);
        if (mpi_wait(m, code, &rq, "recv", deadline_ms, err) < 0)
            return -1;
    }
    return 0;
}
