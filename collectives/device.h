/* device.h - collectives on GPU buffers: queued on a stream, waited for with a deadline.
 *
 * Beside every such table there is one of collectives.h, for what lies in the process's memory (counts, weights of a
 * checkpoint, data) and for noticing that a rank has died.
 *
 * Shapes:    every rank queues the same calls in the same order with the same sizes. Streams and events are CUDA's, as
 *            void *: cudaStream_t, cudaEvent_t.
 * Ownership: the opener ends a table with device_comm_close, before the collectives table and the device, and after
 *            every recorded graph that has one of its calls in it: NCCL waits for those. Memory from `buffer` lives as
 *            long as the table. A table of `among` ends before the one that it came from.
 * Threads:   one thread uses a table at a time.
 * Capture:   the queueing calls may be recorded into a graph, in thread-local mode, when the same sizes have run once
 *            outside (`buffer` does that); `buffer`, `wait` and `sync` may not.
 * Errors:    those of collectives.h, with its exit codes: ERR_PEER 140 (a rank has died), ERR_TIMEOUT and
 *            ERR_TRANSIENT 138 (the deadline passed; NCCL reports an error of its own), ERR_INVALID, ERR_FATAL.
 *            An argument that the table itself refuses (a rank out of range, a negative timeout, a buffer too many)
 *            leaves it as it was. After any other failure it is `lost`: everything in flight has been told to abort,
 *            every later call fails the same way, and so may every call on the device, or never return: then free
 *            nothing of the device and end the process (_exit), which has to happen within two seconds.
 * Numerics:  all ranks get the same bits; in which order a sum is taken is NCCL's affair, and does not change between
 *            runs of the same ranks on the same machines with the same NCCL_* environment.
 */
#ifndef TK_COLLECTIVES_DEVICE_H
#define TK_COLLECTIVES_DEVICE_H

#include "collectives/collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

enum device_type { DEVICE_F32, DEVICE_BF16, DEVICE_F64 };

enum { DEVICE_BUFFERS_MAX = 16 };

struct device_comm {
    int rank, world;
    char transport[32]; /* "nccl 2.32.3": for a log line */
    bool lost;
    void *state;

    /* `bytes` of zeroed device memory (a multiple of 4) on which all_reduce is fastest: registered with all ranks. A
     * collective call that waits; at most DEVICE_BUFFERS_MAX times. NULL on failure. */
    void *(*buffer)(struct device_comm *c, size_t bytes, int64_t timeout_ms, struct err *err);

    /* x[i] = sum over ranks of x[i]. */
    int (*all_reduce)(struct device_comm *c, void *x, size_t n, enum device_type type, void *stream,
                      struct err *err) MUST_CHECK;
    /* all[r * n ..] = rank r's n elements; mine may be all + rank * n. */
    int (*all_gather)(struct device_comm *c, const void *mine, void *all, size_t n, enum device_type type,
                      void *stream, struct err *err) MUST_CHECK;
    /* mine[i] = sum over ranks of all[rank * n + i]; mine may be all + rank * n. */
    int (*reduce_scatter)(struct device_comm *c, const void *all, void *mine, size_t n, enum device_type type,
                          void *stream, struct err *err) MUST_CHECK;
    int (*broadcast)(struct device_comm *c, void *bytes, size_t len, int root, void *stream,
                     struct err *err) MUST_CHECK;
    int (*send)(struct device_comm *c, const void *bytes, size_t len, int to, void *stream,
                struct err *err) MUST_CHECK;
    int (*recv)(struct device_comm *c, void *bytes, size_t len, int from, void *stream,
                struct err *err) MUST_CHECK;

    /* A table of its own for the ranks of `host`, some of this table's (collectives/group.h): a collective call of theirs.
     * Both stand and fall together: what makes one lost makes the other, too, and waiting for either looks at both. Calls
     * of both may be in flight when all ranks have queued them in one order, on one stream. NULL on failure, which is one
     * of both tables; at most one such table at a time. */
    struct device_comm *(*among)(struct device_comm *c, struct collectives *host, int64_t timeout_ms,
                                 struct err *err);

    /* Until what was queued before `event` was recorded is done, or on `stream`. `what` names it in messages. */
    int (*wait)(struct device_comm *c, void *event, const char *what, int64_t timeout_ms,
                struct err *err) MUST_CHECK;
    int (*sync)(struct device_comm *c, void *stream, const char *what, int64_t timeout_ms,
                struct err *err) MUST_CHECK;

    void (*close)(struct device_comm *c);
};

/* Leave, all ranks together when all is well; nothing may be in flight. Accepts NULL. Some seconds at most. */
void device_comm_close(struct device_comm *c);

static inline void device_comm_closep(struct device_comm **c)
{
    device_comm_close(*c);
}
#define cleanup_device_comm __attribute__((cleanup(device_comm_closep)))

/* Flags (enum collectives_flag, the low DEVICE_FLAGS bits) ride behind the gradient as numbers: each rank puts 0 or 1
 * there for each bit, and a sum above 0 says that a rank has raised it. Exact in f32 and bf16 (up to 256 ranks in bf16:
 * beyond, a sum is rounded, but not to 0). */
enum { DEVICE_FLAGS = 16 };
void device_flags_put(uint32_t flags, float put[DEVICE_FLAGS]);
uint32_t device_flags_get(const float sums[DEVICE_FLAGS]);

#ifdef __cplusplus
}
#endif

#endif
