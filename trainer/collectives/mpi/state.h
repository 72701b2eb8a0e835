/* state.h - the transport over an MPI library: what its files share.
 *
 * Order:     every call begins with an exchange of one block per rank, of a size that never changes: what the rank is about
 *            to do, and its numbers if they are few. Ranks that disagree learn it there, before data moves.
 * Numerics:  the library's own reductions promise no order; numbers are moved by it and added by us.
 * Errors:    the first failure stays in `failed`. After one, requests may be under way for ever: the table does nothing
 *            more, and MPI is not finalized, by which the launcher knows that this rank has failed. Only ranks that disagree
 *            part in peace: all know it, and nothing is under way. To leave is a call too: a rank that does so while others
 *            are in another one is what they disagree about (ERR_PEER), and it waits until they have left as well. Who waits
 *            for its message learns it at the deadline.
 */
#ifndef TK_TRAINER_COLLECTIVES_MPI_STATE_H
#define TK_TRAINER_COLLECTIVES_MPI_STATE_H

#include "trainer/collectives/collectives.h"
#include "trainer/collectives/reduce.h"

#include <mpi.h>

enum {
    MPI_INLINE_BYTES = 480,
    MPI_CHUNK_BYTES = 4 << 20, /* of a vector, at a time */
    MPI_MOST_BYTES = 1 << 30,  /* counts are int */
};

enum mpi_op {
    MPI_CALL_REDUCE = 1,
    MPI_CALL_REDUCE_F64,
    MPI_CALL_SCATTER,
    MPI_CALL_BROADCAST,
    MPI_CALL_GATHER,
    MPI_CALL_BARRIER,
    MPI_CALL_SHARED,
    MPI_CALL_CLOSE,
};

struct mpi_block {
    uint64_t n;
    uint32_t op, root, flags, has_flags;
    uint64_t seq;
    char data[MPI_INLINE_BYTES];
};

struct mpi {
    MPI_Comm comm;
    int rank, world;
    int64_t patience_ms; /* for the others at the end */
    uint64_t seq;
    struct err failed;
    bool all_failed;                /* every rank has, at the same place, with nothing under way */
    struct mpi_block mine, *blocks; /* [world] of the call */
    char *area;                     /* MPI_CHUNK_BYTES and a cache line per rank */
    int *send_counts, *send_at, *recv_counts, *recv_at; /* [world] */
    const void **src;                                   /* [world] */
    float *shared[COLLECTIVES_SHARED_MAX];
    int n_shared;
};

/* wait.c: the deadline of a call, and the failure that may have been. */
int mpi_begin(const struct mpi *m, const char *what, int64_t timeout_ms, int64_t *deadline_ms,
              struct err *err) MUST_CHECK;
/* Poll until `rq`, which a call of the library with this return code began, is done. */
int mpi_wait(struct mpi *m, int code, MPI_Request *rq, const char *what, int64_t deadline_ms,
             struct err *err) MUST_CHECK;
/* Keep a failure. Always -1. */
int mpi_fail(struct mpi *m, const struct err *why, struct err *err);

/* agree.c: exchange m->mine, of which op, n, root, flags, has_flags and data are set; then m->blocks are all ranks'. */
int mpi_exchange(struct mpi *m, const char *what, int64_t deadline_ms, struct err *err) MUST_CHECK;
/* The same, and all are in the same call. */
int mpi_agree(struct mpi *m, const char *what, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* sum.c, move.c: the table's entries. */
int mpi_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                   struct err *err) MUST_CHECK;
int mpi_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                       struct err *err) MUST_CHECK;
int mpi_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms,
                       struct err *err) MUST_CHECK;
int mpi_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                  struct err *err) MUST_CHECK;
int mpi_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                   struct err *err) MUST_CHECK;
int mpi_barrier(struct collectives *c, int64_t timeout_ms, struct err *err) MUST_CHECK;
int mpi_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
             struct err *err) MUST_CHECK;
int mpi_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
             struct err *err) MUST_CHECK;

/* table.c */
int mpi_open(struct collectives *c, int64_t timeout_ms, struct err *err) MUST_CHECK;

#endif
