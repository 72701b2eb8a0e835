/* device.h - collective operations on GPU buffers: calls are queued on a stream, and waited for with a deadline.
 *
 * trainer/run/resident calls it. Each table needs a table of collectives.h (the host table), which carries
 * data in host memory (counts, checkpoint weights, samples) and detects dead ranks.
 *
 * Shapes:    every rank queues the same calls in the same order with the same sizes. Streams and events are
 *            CUDA's cudaStream_t and cudaEvent_t, passed as void *.
 * Ownership: the opener closes a table with device_comm_close: before the host table and the device, and after
 *            it has destroyed every CUDA graph that contains one of the table's calls, because NCCL waits for
 *            those. Memory from `buffer` is valid until the table is closed.
 * Threads:   one thread uses a table at a time.
 * Capture:   the queueing calls may be captured into a CUDA graph, in thread-local mode, once the same sizes
 *            have run outside of a capture (`buffer` runs its size). `buffer`, `wait` and `sync` may not be
 *            captured.
 * Errors:    those of collectives.h, with its exit codes: ERR_PEER 140 (a rank died), ERR_TIMEOUT and
 *            ERR_TRANSIENT 138 (the deadline passed; NCCL or CUDA reported an error), ERR_INVALID, ERR_FATAL.
 *            One buffer too many is refused; other arguments are not checked. After any other failure the
 *            table is `lost`: all calls in flight are being aborted, and every later call on the table fails
 *            with the same error. Any other call on the device may fail too, or never return. So free nothing
 *            on the device, and end the process (_exit) within 2 seconds.
 * Numerics:  all ranks get the same bits. NCCL chooses the order of summation, which is the same in every run of
 *            the same ranks on the same machines with the same NCCL_* environment.
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
    bool lost;          /* see Errors */
    void *state;

    /* Allocate `bytes` (a multiple of 4) of zeroed device memory, registered with all ranks, so that all_reduce
     * on it is fastest. A collective call that waits; at most DEVICE_BUFFERS_MAX per table. NULL on failure. */
    void *(*buffer)(struct device_comm *c, size_t bytes, int64_t timeout_ms, struct err *err);

    /* x[i] = sum over ranks of x[i], for n elements. */
    int (*all_reduce)(struct device_comm *c, void *x, size_t n, enum device_type type, void *stream,
                      struct err *err) MUST_CHECK;
    /* As in collectives.h, in device memory. */
    int (*send)(struct device_comm *c, const void *bytes, size_t len, int to, void *stream,
                struct err *err) MUST_CHECK;
    int (*recv)(struct device_comm *c, void *bytes, size_t len, int from, void *stream,
                struct err *err) MUST_CHECK;

    /* Wait until all work queued before `event` was recorded, or all work on `stream`, is done. `what` names the
     * work in messages. */
    int (*wait)(struct device_comm *c, void *event, const char *what, int64_t timeout_ms,
                struct err *err) MUST_CHECK;
    int (*sync)(struct device_comm *c, void *stream, const char *what, int64_t timeout_ms,
                struct err *err) MUST_CHECK;

    void (*close)(struct device_comm *c);
};

/* Free the table; unless it is lost, a collective call of its ranks. Nothing may be in flight. Takes a few
 * seconds at most. Accepts NULL. */
static inline void device_comm_close(struct device_comm *c)
{
    if (c)
        c->close(c);
}

/* all_reduce on a device has no flags argument. So the caller stores the low DEVICE_FLAGS bits of enum
 * collectives_flag as numbers 0 or 1 after the gradient; a flag is set if its sum is above 0. Sums are exact
 * in f32, and in bf16 for up to 256 ranks; with more ranks bf16 rounds them, but never to 0. */
enum { DEVICE_FLAGS = 16 };

#ifdef __cplusplus
}
#endif

#endif
