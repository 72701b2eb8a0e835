/* table.c - MPI's beginning and end, and the table. */
#include "common/clock.h"
#include "common/memory.h"
#include "trainer/collectives/mpi/state.h"

#include <stdlib.h>

enum { LINE_BYTES = 64 };

static void *take(size_t n, size_t size)
{
    return memory_must(calloc(n, size));
}

static struct mpi *new_state(const struct collectives *c, int64_t timeout_ms)
{
    struct mpi *m = take(1, sizeof(*m));
    const size_t world = (size_t)c->world;

    m->rank = c->rank;
    m->world = c->world;
    m->patience_ms = timeout_ms;
    m->comm = MPI_COMM_NULL;
    m->blocks = take(world, sizeof(*m->blocks));
    m->area = take(1, MPI_CHUNK_BYTES + world * LINE_BYTES * sizeof(double));
    m->send_counts = take(world, sizeof(int));
    m->send_at = take(world, sizeof(int));
    m->recv_counts = take(world, sizeof(int));
    m->recv_at = take(world, sizeof(int));
    m->src = take(world, sizeof(*m->src));
    return m;
}

static void free_state(struct mpi *m)
{
    for (int i = 0; i < m->n_shared; i++)
        free(m->shared[i]);
    free(m->blocks);
    free(m->area);
    free(m->send_counts);
    free(m->send_at);
    free(m->recv_counts);
    free(m->recv_at);
    free(m->src);
    free(m);
}

static float *mpi_shared(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err)
{
    struct mpi *m = c->state;
    const size_t most = (size_t)1 << 40;
    int64_t deadline_ms;

    if (mpi_begin(m, "shared", timeout_ms, &deadline_ms, err) < 0)
        return NULL;
    if (m->n_shared == COLLECTIVES_SHARED_MAX || n > most / sizeof(float)) {
        err_set(err, ERR_INVALID, "shared: more than %d pieces, or too large (%zu floats)",
                COLLECTIVES_SHARED_MAX, n);
        return NULL;
    }
    m->mine = (struct mpi_block){.op = MPI_CALL_SHARED, .n = n};
    if (mpi_agree(m, "shared", deadline_ms, err) < 0)
        return NULL;
    const size_t bytes = (n * sizeof(float) / 4096 + 1) * 4096; /* as elsewhere, it begins with a page */
    float *x = memory_must(aligned_alloc(4096, bytes));
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        x[i] = 0;
    return m->shared[m->n_shared++] = x;
}

static bool all_leave(const struct mpi *m)
{
    for (int r = 0; r < m->world; r++)
        if (m->blocks[r].op != MPI_CALL_CLOSE)
            return false;
    return true;
}

/* MPI's own end waits without a deadline: enter it with all the others, or not at all. Those who were in a call learn that
 * it has failed, and come here next. */
static void mpi_close(struct collectives *c)
{
    struct mpi *m = c->state;
    const int64_t deadline_ms = clock_mono_ms() + m->patience_ms;
    bool idle = m->failed.kind == ERR_NONE || m->all_failed, all = false;
    struct err ignored;

    while (idle && !all) {
        m->mine = (struct mpi_block){.op = MPI_CALL_CLOSE};
        idle = mpi_exchange(m, "close", deadline_ms, &ignored) == 0;
        all = idle && all_leave(m);
    }
    if (!all) /* what is under way may still write */
        return;
    (void)MPI_Comm_free(&m->comm);
    (void)MPI_Finalize();
    free_state(m);
}

/* Another thread's work needs no MPI, but it is not always the first thread that calls. */
static int start(struct mpi *m, struct err *err)
{
    int level = MPI_THREAD_SINGLE, rank = -1, world = -1;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
        return err_set(err, ERR_FATAL, "MPI_Init_thread failed");
    if (level < MPI_THREAD_FUNNELED)
        return err_set(err, ERR_INVALID, "--backend mpi: this MPI library allows no threads");
    if (MPI_Comm_dup(MPI_COMM_WORLD, &m->comm) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(m->comm, &rank) != MPI_SUCCESS || MPI_Comm_size(m->comm, &world) != MPI_SUCCESS)
        return err_set(err, ERR_FATAL, "MPI cannot make a communicator");
    if (rank != m->rank || world != m->world)
        return err_set(err, ERR_INVALID,
                       "MPI says rank %d of %d, its launcher rank %d of %d: is it another MPI's launcher?",
                       rank, world, m->rank, m->world);
    return 0;
}

int mpi_open(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    struct mpi *m = new_state(c, timeout_ms);

    c->transport = "mpi";
    c->state = m;
    c->all_reduce = mpi_all_reduce;
    c->all_reduce_f64 = mpi_all_reduce_f64;
    c->broadcast = mpi_broadcast;
    c->all_gather = mpi_all_gather;
    c->reduce_scatter = mpi_reduce_scatter;
    c->barrier = mpi_barrier;
    c->send = mpi_send;
    c->recv = mpi_recv;
    c->shared = mpi_shared;
    c->close = mpi_close;
    if (start(m, err) == 0 && mpi_barrier(c, timeout_ms, err) == 0)
        return 0;
    if (m->failed.kind == ERR_NONE)
        free_state(m);
    return -1;
}
