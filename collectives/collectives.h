/* collectives.h - what the ranks of one training run do together: one table, several transports behind it.
 *
 * Shapes:    every rank calls the same functions in the same order with the same sizes; a rank that does not is told
 *            so (ERR_INVALID) together with its peers, before any data moves.
 * Ownership: the caller owns every buffer and may reuse it as soon as a call returns. collectives_open gives a table
 *            that collectives_close ends; memory from `shared` lives as long as the table.
 * Threads:   one thread uses a table at a time.
 * Units:     timeout_ms bounds one call; a negative one is refused, 0 means "only if nobody has to wait".
 * Errors:    ERR_PEER (a peer process went away: collectives_exit_code gives 140), ERR_TIMEOUT (the deadline passed,
 *            the message names the ranks that were missing: 138), ERR_INVALID (bad arguments, ranks that disagree:
 *            1), ERR_FATAL (the system refused: 1). An argument that this rank can refuse by itself (a root or peer
 *            that is no such rank, a negative timeout, a piece too many) leaves the table as it was, as if there had
 *            been no call. After any other failure data buffers are unspecified, and every later call on the same
 *            table fails the same way.
 *            Within a pod a dead process is noticed in a tenth of a second, elsewhere within 1 s, a lost host within
 *            5 s; when rank 0 itself is stopped, the message comes up to 1 s after the deadline.
 * Numerics:  sums are taken in rank order, 0 + 1 + 2 + ..., element by element: bit-identical on every rank, in every
 *            run and whatever path a size takes.
 */
#ifndef TK_COLLECTIVES_COLLECTIVES_H
#define TK_COLLECTIVES_COLLECTIVES_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits that ranks raise for each other on the gradient's all_reduce; they come back OR-ed over all ranks, so
 * that every rank takes the same decision after the same step. The low ones are named here, the rest are free. */
enum collectives_flag {
    COLLECTIVES_STOP_TERM = 1u << 0, /* this rank was told to stop by SIGTERM */
    COLLECTIVES_STOP_INT = 1u << 1,  /* ... by SIGINT */
    COLLECTIVES_NONFINITE = 1u << 2, /* this rank's loss is not a finite number */
    COLLECTIVES_SAVE = 1u << 3,      /* a checkpoint is due, by rank 0's clock */
};

enum collectives_backend {
    COLLECTIVES_GLOO, /* shared memory inside a pod, TCP between pods: the default */
    COLLECTIVES_NCCL,
};

enum { COLLECTIVES_RANKS_MAX = 4096, COLLECTIVES_HOST_RANKS_MAX = 256, COLLECTIVES_RUN_ID_BYTES = 256 };

struct collectives {
    int rank;
    int world;
    const char *transport; /* "solo", "host", "pods": for a log line */
    void *state;           /* the transport's own */
    uint32_t
        unauthenticated; /* connections from elsewhere that this rank has dropped, as of its last barrier or recv */

    /* x[i] = sum over ranks of x[i]. flags (may be NULL on every rank or on none): see collectives_flag. */
    int (*all_reduce)(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                      struct err *err) MUST_CHECK;
    /* The same in f64, for counts and loss sums. */
    int (*all_reduce_f64)(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                          struct err *err) MUST_CHECK;
    /* root's bytes on every rank. */
    int (*broadcast)(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                     struct err *err) MUST_CHECK;
    /* all[r * len .. ] = rank r's `len` bytes; `all` holds world * len and may contain `mine` at its place. */
    int (*all_gather)(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                      struct err *err) MUST_CHECK;
    /* This rank's part (collectives_part) of x becomes the sum over ranks; the rest of x is unspecified. */
    int (*reduce_scatter)(struct collectives *c, float *x, size_t n, int64_t timeout_ms,
                          struct err *err) MUST_CHECK;
    int (*barrier)(struct collectives *c, int64_t timeout_ms, struct err *err) MUST_CHECK;

    /* Between two ranks, in order, with equal lengths at both ends; others need not take part. send may
     * return before the other end has read. */
    int (*send)(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
                struct err *err) MUST_CHECK;
    int (*recv)(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
                struct err *err) MUST_CHECK;

    /* Between two calls, without waiting: ERR_PEER when a rank has gone, as a call of all ranks would say. For those who
     * wait for something else meanwhile. NULL: nobody can go. `what` names that in the message. */
    int (*look)(struct collectives *c, const char *what, struct err *err);

    /* `n` zeroed floats, 64-byte aligned, on which all_reduce and reduce_scatter need no copy when every rank
     * passes the same part of them. A collective call itself. NULL on failure. At most
     * COLLECTIVES_SHARED_MAX times per table. */
    float *(*shared)(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err);

    /* Where ranks share memory: each[r] is rank r's x, which must lie in a shared piece (else ERR_INVALID); flags as in
     * all_reduce. Until its next call of all ranks a rank may read them, and write its own part (collectives_part) of
     * every one: whatever a sum by parts is for, done in one pass. The rest nobody writes meanwhile. NULL: there is no
     * such memory. */
    int (*view)(struct collectives *c, float *x, size_t n, uint32_t *flags, float **each, int64_t timeout_ms,
                struct err *err) MUST_CHECK;

    /* Ends the table; collectives_close calls it. */
    void (*close)(struct collectives *c);
};

enum { COLLECTIVES_SHARED_MAX = 16 };

/* Who this process is, as its launcher said it. Strings are borrowed until collectives_open returns. */
struct collectives_config {
    enum collectives_backend backend;
    int rank, world;
    int local_rank, local_world;
    int group_rank;    /* which of the run's hosts this is */
    int restart_count; /* the launcher's round: ranks of two rounds of one pod never meet */
    const char *run_id;
    const char *master_addr; /* of rank 0; needed between pods. NULL: not given */
    int master_port;         /* where rank 0 then serves the rendezvous store */
    int lanes;               /* links between two neighbouring pods; 0: one per rank, up to 8 */
};

/* Fill *cfg from the environment (`get` is getenv or a test's own): RANK, WORLD_SIZE, LOCAL_RANK,
 * LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT and the launcher's run id and restart count. Without
 * RANK and WORLD_SIZE: one process alone. backend is left as it was. ERR_INVALID names the variable. */
int collectives_config_read(struct collectives_config *cfg, char *(*get)(const char *name),
                            struct err *err) MUST_CHECK;

/* Meet the other ranks. timeout_ms bounds the wait for all of them to come. NULL on failure; ERR_INVALID when
 * the configuration asks for a transport that this build or machine does not have. */
struct collectives *collectives_open(const struct collectives_config *cfg, int64_t timeout_ms,
                                     struct err *err);

/* Leave: frees the table and all it holds. Accepts NULL. Peers that still wait for this rank get ERR_PEER. */
void collectives_close(struct collectives *c);

static inline int collectives_look(struct collectives *c, const char *what, struct err *err)
{
    return c->look ? c->look(c, what, err) : 0;
}

static inline void collectives_closep(struct collectives **c)
{
    collectives_close(*c);
}
#define cleanup_collectives __attribute__((cleanup(collectives_closep)))

/* The part of n elements that rank `rank` of `world` owns in reduce_scatter: [*begin, *end), whole cache
 * lines but for the last, empty for the last ranks when n is small. */
void collectives_part(size_t n, int rank, int world, size_t *begin, size_t *end);

/* The process's exit status for an error of this library: see common/contract.h. */
int collectives_exit_code(const struct err *err);

#ifdef __cplusplus
}
#endif

#endif
