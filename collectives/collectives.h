/* collectives.h - collective operations (all_reduce, broadcast, barrier, ...) and point-to-point messages
 * between the ranks of one training run, as a table of functions that each transport fills in. The trainer
 * opens it and calls it through noted.h.
 *
 * Shapes:    every rank makes the same collective calls in the same order with the same sizes. When ranks
 *            disagree, all of them get ERR_INVALID before any data moves.
 * Ownership: the caller owns every buffer and may reuse it as soon as a call returns. collectives_open creates a
 *            table, collectives_close frees it. Memory from `shared` is valid until the table is closed.
 * Threads:   one thread uses a table at a time.
 * Units:     timeout_ms, at least 0, bounds one call; with 0 a call succeeds only if it need not wait.
 * Errors:    with the process's exit status as collectives_exit_code gives it:
 *            ERR_PEER (140):    a peer process went away;
 *            ERR_TIMEOUT (138): the deadline passed; the message names the ranks that were missing;
 *            ERR_INVALID (1):   ranks that disagree, or that are configured wrongly;
 *            ERR_CONFLICT (138): while ranks connect: a process of another round or version, or a port that
 *            is taken; ERR_FATAL (1): a system call failed (138 when memory, processes or descriptors ran
 *            out). One shared piece too many is refused; other arguments are not checked. After any other
 *            failure the contents of data buffers are unspecified, and every later call on the table fails with
 *            the same error. A process that waits for a dead one of the same pod is woken at once, one in
 *            another pod within 1 s; a lost host is detected within 5 s. When rank 0 is stopped (SIGSTOP),
 *            ERR_TIMEOUT comes up to 5 s after the deadline.
 * Numerics:  sums are taken element by element in rank order, 0 + 1 + 2 + ...: bit-identical on every rank, in
 *            every run and with every algorithm.
 */
#ifndef TK_COLLECTIVES_COLLECTIVES_H
#define TK_COLLECTIVES_COLLECTIVES_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/jobkey.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits that ranks pass to the gradient's all_reduce. Every rank gets the bitwise OR over all ranks, so that all
 * take the same decision after the same step. The low bits are named here, the others are free for the caller. */
enum collectives_flag {
    COLLECTIVES_STOP_TERM = 1u << 0, /* this rank received SIGTERM */
    COLLECTIVES_STOP_INT = 1u << 1,  /* this rank received SIGINT */
    COLLECTIVES_NONFINITE = 1u << 2, /* this rank's loss is not a finite number */
    COLLECTIVES_SAVE = 1u << 3,      /* rank 0 wants a checkpoint of this step */
};

/* How gradients are summed (--backend). */
enum collectives_backend {
    COLLECTIVES_GLOO, /* shared memory inside a pod, TCP between pods: the default */
    COLLECTIVES_NCCL,
};

enum { COLLECTIVES_RANKS_MAX = 4096, COLLECTIVES_HOST_RANKS_MAX = 256 };

struct rank_slot;
struct watch_server;

/* Use the functions of noted.h, which note each call in the rank's slot, rather than the table's own. */
struct collectives {
    int rank;
    int world;
    const char *transport; /* "solo", "host", "pods" or "pods without shared memory": for a log line */
    void *state;           /* the transport's own */
    /* Rank 0's watch, if there are ranks in other pods or waiting ranks (`awaiting`); else NULL. */
    struct watch_server *watch;
    /* Where noted.h records calls; NULL: it does not. */
    struct rank_slot *slot;

    /* x[i] = sum over ranks of x[i], for n floats. *flags becomes the OR over ranks (see collectives_flag);
     * flags is NULL on every rank or on none. */
    int (*all_reduce)(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                      struct err *err) MUST_CHECK;
    /* The same for n doubles: counts and loss sums. */
    int (*all_reduce_f64)(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                          struct err *err) MUST_CHECK;
    /* Copy root's `len` bytes to every rank. */
    int (*broadcast)(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                     struct err *err) MUST_CHECK;
    /* all[r * len ..] = rank r's `len` bytes. `all` holds world * len bytes; `mine` may be all + rank * len. */
    int (*all_gather)(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                      struct err *err) MUST_CHECK;
    /* Return when every rank has called it. */
    int (*barrier)(struct collectives *c, int64_t timeout_ms, struct err *err) MUST_CHECK;

    /* A message of `len` bytes from one rank to another; the other ranks do not call it. Messages of a pair
     * arrive in order, and both ends pass the same length. send may return before the receiver has read. */
    int (*send)(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
                struct err *err) MUST_CHECK;
    int (*recv)(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
                struct err *err) MUST_CHECK;

    /* Between two calls: check that all peers are alive, for a caller that waits for something else (`what`,
     * named in the message). Does not wait. Fails as a collective call would, usually with ERR_PEER. */
    int (*look)(struct collectives *c, const char *what, struct err *err);

    /* Allocate a shared piece: `n` zeroed floats, 64-byte aligned. all_reduce on it needs no staging copy if
     * every rank passes the same range of it. A collective call; at most COLLECTIVES_SHARED_MAX per table.
     * NULL on failure. */
    float *(*shared)(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err);

    /* Free what the transport holds; collectives_close calls it. */
    void (*close)(struct collectives *c);
};

enum { COLLECTIVES_SHARED_MAX = 16 };

/* This process's rank and the shape of the run, as its launcher set them. Strings are borrowed until
 * collectives_open returns. */
struct collectives_config {
    int rank, world;
    int local_rank, local_world;
    int group_rank;    /* index of this rank's pod (host) in the run */
    int restart_count; /* the launcher's restart round; ranks of different rounds do not connect within a pod */
    const char *run_id;
    struct jobkey key; /* by which ranks of several pods authenticate each other */
    /* Memory file with the key; NULL or "": use `key`. collectives_open reads it if ranks are in several
     * pods, or cannot share memory, and on rank 0 if `awaiting` > 0. collectives_await_end always reads
     * it. */
    const char *key_file;
    const char *master_addr; /* rank 0's address, needed between pods; NULL: not given */
    /* TCP port at which rank 0's watch listens. collectives_config_read takes MASTER_PORT, or MASTER_PORT + 1 when
     * TORCHELASTIC_USE_AGENT_STORE is True, because PyTorch's launcher listens at MASTER_PORT. */
    int master_port;
    int awaiting; /* ranks beyond `world`, which only call collectives_await_end */
    struct rank_slot
        *slot; /* this process's slot (host/rank_state.h), valid until the table is closed; NULL: none */
};

/* Fill *cfg from the environment (`get` is getenv or a test's substitute): RANK, WORLD_SIZE, LOCAL_RANK,
 * LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT, and the launcher's run id and restart count. Without
 * RANK and WORLD_SIZE the run has one process. When the LOCAL_* variables are unset, a loopback or unset
 * MASTER_ADDR means one host, any other address one host per rank. Set slot and awaiting afterwards.
 * key_file comes from CONTRACT_ENV_KEY_FILE; key stays empty. ERR_INVALID names the variable. */
int collectives_config_read(struct collectives_config *cfg, char *(*get)(const char *name),
                            struct err *err) MUST_CHECK;

/* Connect to the other ranks and create a table. timeout_ms bounds the wait until all ranks have connected. NULL
 * on failure. The table is for host memory: device.h has the NCCL operations. */
struct collectives *collectives_open(const struct collectives_config *cfg, int64_t timeout_ms,
                                     struct err *err);

/* Disconnect and free the table with all it holds. Accepts NULL. Peers that still wait for this rank get
 * ERR_PEER. */
void collectives_close(struct collectives *c);

/* For a waiting rank (collectives_config.awaiting): wait until rank 0 reports how the run has ended.
 * timeout_ms bounds the wait for rank 0 to start. ERR_PEER: rank 0 went away without a report. */
int collectives_await_end(const struct collectives_config *cfg, int64_t timeout_ms, int *exit_code,
                          struct err *err) MUST_CHECK;

/* On rank 0: set the exit code that collectives_close reports to waiting ranks, for which it waits up to
 * wait_ms. */
void collectives_end(struct collectives *c, int exit_code, int64_t wait_ms);

static inline void collectives_closep(struct collectives **c)
{
    collectives_close(*c);
}
#define cleanup_collectives __attribute__((cleanup(collectives_closep)))

/* The part of n elements that rank `rank` of `world` sums for all: [*begin, *end). Parts are multiples
 * of 16 elements (a cache line of floats) except at the end of the vector; with small n the last ranks' parts
 * are empty. */
void collectives_part(size_t n, int rank, int world, size_t *begin, size_t *end);

/* The exit status of common/contract.h for an error of this library. */
int collectives_exit_code(const struct err *err);

#ifdef __cplusplus
}
#endif

#endif
