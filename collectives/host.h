/* host.h - ranks of one host: a shared segment for the data, a socket per pair for life signs and messages.
 *
 * Ownership: struct host owns its sockets, the segment's file and every mapping. The segment is an unnamed memory
 *            file and the sockets have abstract names only while the ranks meet, so that nothing outlives the
 *            processes, whatever kills them. A rank that is alone in its pod has neither.
 * Order:     a collective is a row of phases. In phase p every rank writes its own half p % 2 of the staging area,
 *            then all arrive, then every rank may read anyone's half p % 2. A rank can only be in phase p + 2 when
 *            all have arrived in p + 1, so nobody still reads what it overwrites: one barrier per phase is enough.
 * Errors:    those of collectives.h. The first failure stays in `failed` and is the answer to every later call.
 */
#ifndef TK_COLLECTIVES_HOST_H
#define TK_COLLECTIVES_HOST_H

#include "collectives/collectives.h"

#include <stdatomic.h>

enum {
    HOST_HALF_BYTES = 512 * 1024, /* staging per rank and phase */
    HOST_SMALL_BYTES = 8 * 1024,  /* up to here every rank sums everything itself: one phase instead of two */
    HOST_SLICE_MS = 100,          /* how often a waiting rank looks whether its peers live */
    HOST_SPINS_MAX = 4096,        /* about 50 us; only with a CPU per rank */
    HOST_SPINS_MIN = 128,
    HOST_SPINS_PER_YIELD = 64,
};

enum host_op {
    HOST_OPEN = 1,
    HOST_ALL_REDUCE,
    HOST_ALL_REDUCE_F64,
    HOST_BROADCAST,
    HOST_ALL_GATHER,
    HOST_REDUCE_SCATTER,
    HOST_BARRIER,
    HOST_SHARED,
    HOST_VIEW,
};

/* What a rank is about to do, for its peers to compare; place: where in the shared pieces, 0 is outside. */
struct host_call {
    uint32_t op;
    uint32_t root;
    uint64_t n;
    uint64_t place;
    uint32_t flags;
    uint32_t has_flags;
};

struct host_slot {
    _Alignas(128) struct host_call call[2];
    _Atomic uint32_t phase; /* phases this rank has arrived in */
};

struct host_head {
    uint64_t magic;
    uint32_t world;
    uint32_t half_bytes;
    _Alignas(128) _Atomic uint32_t arrived;
    _Alignas(128) _Atomic uint32_t generation;
    _Alignas(128) _Atomic uint32_t sleepers;
    _Alignas(128) _Atomic uint32_t lost; /* 1 + a rank that someone saw go */
};

/* A piece given out by `shared`: rank r's part lies at base + r * stride. */
struct host_piece {
    char *base;
    size_t stride; /* bytes */
    size_t n;      /* floats */
};

/* What else ends a wait, when these ranks are a part of the run only: asked in slices of HOST_SLICE_MS. Each sets *err
 * and returns -1, or 0 to wait on; timed_out always ends it. All NULL: nothing else. */
struct host_outlook {
    int (*look)(void *arg, const char *what, struct err *err);
    int (*timed_out)(void *arg, const char *what, struct err *err);
    void (*lost)(void *arg, const char *what,
                 struct err *err); /* a peer here is gone, says *err: is there a better reason? */
    void (*failed)(void *arg, const struct err *err); /* the first failure of the table */
    void *arg;
};

struct host {
    int rank, world;
    int base; /* number of our rank 0 in the run, for messages */
    struct host_outlook outlook;
    int *links;  /* [world] a connected stream socket per peer, -1 for ourselves */
    int segment; /* the memory file; -1: memory of our own */
    char *map;   /* head, slots, staging */
    size_t map_bytes;
    size_t end_bytes; /* of the file, shared pieces included */
    struct host_piece pieces[COLLECTIVES_SHARED_MAX];
    int n_pieces;
    uint32_t phase;   /* ours */
    int spins;        /* how long to spin for the others; 0: never */
    const void **src; /* [world] scratch of the reductions */
    void **dst;
    struct err failed;
};

static inline struct host_head *host_head(const struct host *h)
{
    return (struct host_head *)(void *)h->map;
}

static inline struct host_slot *host_slot(const struct host *h, int rank)
{
    return (struct host_slot *)(void *)(h->map + sizeof(struct host_head)) + rank;
}

size_t host_staging_offset(int world);

static inline size_t host_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where rank `rank` writes in phase `phase`. */
static inline char *host_half(const struct host *h, int rank, uint32_t phase)
{
    return h->map + host_staging_offset(h->world) + ((size_t)rank * 2 + phase % 2) * HOST_HALF_BYTES;
}

/* The milliseconds left until `deadline_ms` of the monotonic clock, never below 0. */
int host_left_ms(int64_t deadline_ms);

/* host_segment.c: rank 0 creates, the others map what they were handed. */
int host_segment_create(struct host *h, struct err *err) MUST_CHECK;
int host_segment_map(struct host *h, struct err *err) MUST_CHECK;
/* The same for a rank that is alone in its pod. */
int host_segment_alone(struct host *h, struct err *err) MUST_CHECK;
void host_segment_close(struct host *h);
/* May there be another piece of n floats? */
int host_segment_allows(const struct host *h, size_t n, struct err *err) MUST_CHECK;
/* Another piece of n floats per rank at the segment's end; see `shared`. */
float *host_segment_piece(struct host *h, size_t n, int64_t deadline_ms, struct err *err);
/* The place of x for struct host_call, and the piece it is in; 0 when it is in none. */
uint64_t host_segment_place(const struct host *h, const float *x, size_t n, const struct host_piece **piece);

/* host_phase.c: tell what we do, arrive, wait for all; then compare. `call` NULL: a further phase of the same
 * call. */
int host_phase(struct host *h, const struct host_call *call, int64_t deadline_ms, struct err *err) MUST_CHECK;
const char *host_op_name(uint32_t op);
/* Keep a failure for all later calls. Always -1. */
int host_fail(struct host *h, const struct err *err);
/* ERR_PEER when a peer's process is gone. `what` names the call. */
int host_peers_check(struct host *h, const char *what, struct err *err) MUST_CHECK;

/* host_probe.c: may this process share memory as host_meet.c does it? And the number of the network namespace in which
 * its abstract names are seen; 0: not known. */
bool host_can_share(void);
uint64_t host_network(void);

/* host.c: one with cfg's local_rank of its local_world ranks, who have yet to meet; and its end. */
struct host *host_new(const struct collectives_config *cfg);
void host_free(struct host *h);

/* host_meet.c: fills links, and segment on every rank. */
int host_meet(struct host *h, const struct collectives_config *cfg, int64_t deadline_ms,
              struct err *err) MUST_CHECK;

/* host.c: every call's first step: the deadline, and the failure that may have been. */
int host_begin(const struct host *h, const char *what, int64_t timeout_ms, int64_t *deadline_ms,
               struct err *err) MUST_CHECK;

/* host_reduce.c: the table's entries of the same names. */
int host_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                    struct err *err) MUST_CHECK;
int host_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms,
                        struct err *err) MUST_CHECK;
int host_reduce_scatter(struct collectives *c, float *x, size_t n, int64_t timeout_ms,
                        struct err *err) MUST_CHECK;
int host_view(struct collectives *c, float *x, size_t n, uint32_t *flags, float **each, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* host_link.c: messages between two ranks. */
int host_link_send(struct host *h, const void *bytes, size_t len, int to, int64_t deadline_ms,
                   struct err *err) MUST_CHECK;
int host_link_recv(struct host *h, void *bytes, size_t len, int from, int64_t deadline_ms,
                   struct err *err) MUST_CHECK;

#endif
