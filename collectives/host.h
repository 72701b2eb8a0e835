/* host.h - collectives between ranks on one host: a shared memory segment carries the data. A UNIX socket per
 * pair of ranks carries messages, and closes when a peer exits. pods.h uses it for the ranks of each pod.
 *
 * Ownership: struct host owns its sockets, the segment's descriptor and all mappings. The segment is an unnamed
 *            memory file (memfd), and abstract socket names exist only while the ranks connect, so the kernel
 *            removes everything when the processes exit, however they do. A rank that is alone in its pod has
 *            private memory and no sockets.
 * Threads:   one thread per rank uses a struct host. Its alarm is a thread of its own, which reads the sockets' state
 *            and writes `lost` and `generation` of the segment.
 * Order:     a collective is a sequence of phases. The staging area has two halves per rank. In phase p each rank
 *            writes its own half p % 2, then waits until all ranks have arrived, and may then read every rank's
 *            half p % 2. A rank enters phase p + 2 only after all have arrived in p + 1, and so have finished
 *            reading the half that it overwrites. One barrier per phase is therefore enough.
 * Errors:    those of collectives.h. The first failure is kept in `failed` and returned by every later call.
 * Units:     deadline_ms is milliseconds of the monotonic clock (clock_mono_ms).
 */
#ifndef TK_COLLECTIVES_HOST_H
#define TK_COLLECTIVES_HOST_H

#include "collectives/collectives.h"
#include "collectives/reduce.h"
#include "collectives/watch.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    HOST_HALF_BYTES = 512 * 1024, /* one half: staging per rank and phase */
    HOST_SMALL_BYTES = 8 * 1024,  /* up to this size each rank sums the whole vector: one phase, not two */
    HOST_SLICE_MS = 100,          /* how often a waiting rank checks its peers, whatever the alarm says */
    HOST_SPINS_MAX = 4096,        /* about 50 us; ranks spin only when each has a CPU */
    HOST_SPINS_MIN = 128,
    HOST_SPINS_PER_YIELD = 64,
};

/* In host_head.generation: bit HOST_LOST means that `lost` is set, so ranks must not sleep; the other bits
 * count barriers. */
enum { HOST_LOST = 1, HOST_BARRIER_STEP = 2 };

enum host_op {
    HOST_OPEN = 1,
    HOST_ALL_REDUCE,
    HOST_ALL_REDUCE_F64,
    HOST_BROADCAST,
    HOST_ALL_GATHER,
    HOST_BARRIER,
    HOST_SHARED,
    HOST_MESSAGE, /* send or recv */
};

/* The description of a call, which ranks compare: all fields but `flags` must be the same on every rank. */
struct host_call {
    uint32_t op; /* enum host_op */
    uint32_t root;
    uint64_t n;         /* elements, or bytes where the call counts bytes */
    uint64_t shared_at; /* position of the vector in the shared pieces (host_segment_find); 0: outside */
    uint32_t flags;
    uint32_t has_flags;
};

/* One rank's state in the segment. */
struct host_slot {
    _Alignas(128) struct host_call call[2]; /* of phase p in call[p % 2] */
    _Atomic uint32_t phase;                 /* the number of phases that this rank has arrived in */
};

/* The start of the segment; slots and staging halves follow. Its layout has a version: HELLO_VERSION in host_meet.c. */
struct host_head {
    _Alignas(128) _Atomic uint32_t arrived; /* ranks in the current barrier */
    /* HOST_BARRIER_STEP for every completed barrier, and HOST_LOST; waiting ranks sleep on it (futex). */
    _Alignas(128) _Atomic uint32_t generation;
    _Alignas(128) _Atomic uint32_t sleepers; /* ranks that sleep */
    _Alignas(128) _Atomic uint32_t lost;     /* 1 + the first rank found to have exited; 0: none */
};

/* A piece allocated by `shared`: rank r's vector is at base + r * stride. */
struct host_piece {
    char *base;
    size_t stride; /* bytes */
    size_t n;      /* floats */
};

/* Vectors of `bytes` bytes: src, of this host's ranks in rank order, and n_dst destinations of the sum.
 * dst[0] is written first and may be one of src. */
struct host_vectors {
    enum reduce_type type;
    size_t bytes;
    const void **src;
    void **dst;
    int n_dst;
};

/* Set by pods_meet.c if the run has several pods; else all NULL. */
struct host_others {
    struct watch *watch; /* reports why a call cannot succeed; host_fail reports this table's failure to it */
    /* Called every HOST_SLICE_MS of a wait. 0: wait on; -1 with *err: end the wait. `what` names the call in
     * messages. */
    int (*look)(void *arg, const char *what, struct err *err);
    /* Sum the vectors and those of the other hosts. *flags: in: this host's flags; out: all hosts'. Ranks
     * 0..parts - 1 call it. */
    int (*sum)(void *arg, const struct host_call *call, const struct host_vectors *v, uint32_t *flags,
               int64_t deadline_ms, struct err *err);
    void *arg;
    int parts;
};

/* The thread of host_alarm.c. */
struct host_alarm {
    pthread_t thread;
    bool runs;
    int stop; /* an eventfd that ends the thread */
    struct pollfd *pfds;
};

struct host {
    int rank, world; /* within the host */
    int base;        /* the run's rank of rank 0 here, for messages */
    struct host_others others;
    int *links; /* [world] a connected stream socket per peer, -1 for this rank */
    struct host_alarm alarm;
    int segment; /* the memory file; -1: private memory */
    char *map;   /* head, slots, staging halves */
    size_t map_bytes;
    size_t end_bytes; /* size of the file, shared pieces included */
    struct host_piece pieces[COLLECTIVES_SHARED_MAX];
    int n_pieces;
    uint32_t phase;   /* the phase that this rank is in */
    int spins;        /* iterations to spin before sleeping, adapted to success; 0: never spin */
    int slice_ms;     /* HOST_SLICE_MS; tests set another value */
    const void **src; /* [world] scratch of the reductions, and dst */
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

/* Bytes from the start of the segment to the staging halves. */
size_t host_staging_offset(int world);

static inline size_t host_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The half that rank `rank` writes in phase `phase`. */
static inline char *host_half(const struct host *h, int rank, uint32_t phase)
{
    return h->map + host_staging_offset(h->world) + ((size_t)rank * 2 + phase % 2) * HOST_HALF_BYTES;
}

/* The milliseconds left until `deadline_ms` of the monotonic clock, never below 0. */
int host_left_ms(int64_t deadline_ms);

/* host_segment.c: rank 0 creates and maps the segment; the others map h->segment, which rank 0 sent them. */
int host_segment_create(struct host *h, struct err *err) MUST_CHECK;
int host_segment_map(struct host *h, struct err *err) MUST_CHECK;
/* The same in private memory, for a rank that is alone in its pod. */
int host_segment_alone(struct host *h, struct err *err) MUST_CHECK;
void host_segment_close(struct host *h);
/* Append a piece of n floats per rank to the segment; returns this rank's vector. See `shared` in
 * collectives.h. */
float *host_segment_piece(struct host *h, size_t n, int64_t deadline_ms, struct err *err);
/* Rank r's floats at `shared_at` in the piece. */
static inline float *host_piece_floats(const struct host_piece *piece, uint64_t shared_at, int r)
{
    const size_t at = (size_t)(shared_at & (((uint64_t)1 << 48) - 1));

    return (float *)(void *)(piece->base + (size_t)r * piece->stride) + at;
}
/* Find x in the shared pieces. Sets *piece and returns shared_at of struct host_call, (index + 1) << 48 | offset
 * in floats; 0, with *piece untouched, when x[0..n) does not lie in one piece of this rank. */
uint64_t host_segment_find(const struct host *h, const float *x, size_t n, const struct host_piece **piece);

/* host_phase.c: publish `call`, arrive, wait for all ranks, then compare their calls (ERR_INVALID when they
 * differ). `call` NULL: a further phase of the same call, not compared again. */
int host_phase(struct host *h, const struct host_call *call, int64_t deadline_ms, struct err *err) MUST_CHECK;
const char *host_op_name(uint32_t op);
/* Whether ranks a and b, in calls x and y, are in the same one: 0, or ERR_INVALID. */
int host_compare(int a, const struct host_call *x, int b, const struct host_call *y,
                 struct err *err) MUST_CHECK;
/* Keep *err for all later calls, unless one is kept already, and report it to the watch. Always -1. */
int host_fail(struct host *h, const struct err *err);
/* ERR_PEER when a peer on this host has exited or closed its table. Does not wait. `what` names the call. */
int host_peers_check(struct host *h, const char *what, struct err *err) MUST_CHECK;
/* Rank lost - 1 has exited: set `lost` for all ranks of the host, and wake those that wait. Any thread may
 * call it. */
void host_raise_lost(struct host *h, uint32_t lost);

/* host_alarm.c: start and end the thread that detects exited peers. Without it, waiting ranks detect them
 * within HOST_SLICE_MS. */
void host_alarm_start(struct host *h);
void host_alarm_stop(struct host *h);

/* host_probe.c: host_can_share: whether this process may use memfd and abstract UNIX sockets, which
 * host_meet.c needs. host_network: the inode number of its network namespace, in which abstract names are
 * visible; 0: not known. */
bool host_can_share(void);
uint64_t host_network(void);

/* host.c: create a struct host for a rank of `world` on this host, of which rank 0 is rank `base` of the run, not
 * connected yet; and free it. */
struct host *host_new(int rank, int world, int base);
void host_free(struct host *h);

/* host_meet.c: connect the ranks of the host, which run as one user and in one network namespace; fills links, segment and
 * map. */
int host_meet(struct host *h, const struct collectives_config *cfg, int64_t deadline_ms,
              struct err *err) MUST_CHECK;

/* host.c: the first step of every call: fails when the table has failed, else sets *deadline_ms. */
int host_begin(const struct host *h, int64_t timeout_ms, int64_t *deadline_ms, struct err *err) MUST_CHECK;

/* host.c: broadcast and all_gather; call->n is the number of bytes of each rank. */
int host_broadcast(struct host *h, const struct host_call *call, void *bytes, int64_t deadline_ms,
                   struct err *err) MUST_CHECK;
int host_all_gather(struct host *h, const struct host_call *call, const void *mine, void *all,
                    int64_t deadline_ms, struct err *err) MUST_CHECK;

/* host_reduce.c: sum n elements at x over all ranks, and OR the flags of their calls. host_reduce: through the staging
 * halves. host_reduce_small: at most HOST_SMALL_BYTES, of ranks on this host only. host_reduce_in_place: in the piece in
 * which all ranks' vectors lie. */
int host_reduce_small(struct host *h, enum reduce_type type, const struct host_call *call, void *x, size_t n,
                      uint32_t *flags, int64_t deadline_ms, struct err *err) MUST_CHECK;
int host_reduce(struct host *h, enum reduce_type type, const struct host_call *call, void *x, size_t n,
                uint32_t *flags, int64_t deadline_ms, struct err *err) MUST_CHECK;
int host_reduce_in_place(struct host *h, const struct host_piece *piece, const struct host_call *call,
                         uint32_t *flags, int64_t deadline_ms, struct err *err) MUST_CHECK;

#endif
