/* cuda.h - a context on an NVIDIA GPU: its private part, for kernels/cuda alone.
 *
 * Stream:  all is queued on one stream, in the order of the calls; collectives may have another beside it, and an operation a
 *          second one for the length of its call (side.c).
 * Memory:  scratch memory, each piece an operation's own for the length of its call: what layers reserved (kctx_reserve, as
 *          on the CPU), and for each of the operations' two streams CUDA_PARTS_BYTES for partial sums and for cuBLAS. Operations choose how
 *          finely they cut their work so that these are enough: nothing is allocated in a step.
 * Errors:  cuda_note keeps the first failure; device_sync, device_get and the table's wait return it from then on.
 */
#ifndef TK_KERNELS_CUDA_CUDA_H
#define TK_KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/ops.h"

/* The operations that this device offers, by name. */
#define KERNEL_CUDA_DECLARE(op) op##_op cuda_##op;
KERNEL_OPS(KERNEL_CUDA_DECLARE)
KERNEL_QUEUED(KERNEL_CUDA_DECLARE)
#undef KERNEL_CUDA_DECLARE

/* CUDA_ARRIVED: counters of 32 bits; a product whose blocks add up parts of k (split.cuh) has at most that many tiles times
 * parts. */
enum {
    CUDA_PARTS_BYTES = 32 << 20,
    CUDA_ARRIVED = 4096,
    CUDA_PARTS_ALL = CUDA_PARTS_BYTES + CUDA_ARRIVED * 4,
    CUDA_NAME_BYTES = 300
};

struct matmul;

/* Another stream, and what orders it and the context's own. */
struct cuda_side {
    cudaStream_t stream;
    cudaEvent_t forked, joined;
};

struct cuda {
    struct kctx ctx;
    int device;
    cudaStream_t stream;
    int sms; /* multiprocessors: how many blocks keep it busy */
    enum precision precision;
    char name[CUDA_NAME_BYTES];
    void *parts;   /* CUDA_PARTS_BYTES, and behind them CUDA_ARRIVED zeros of 32 bits */
    void *scratch; /* what layers reserved */
    size_t scratch_bytes;
    struct matmul *matmul;
    cudaEvent_t mark[DEVICE_MARKS]; /* recorded by `mark`, waited for by `wait` */
    struct cuda_side side, second;  /* for collectives; for operations */
    void *second_parts;             /* as parts */
    cudaError_t error;
    const char *where;
};

/* device: as CUDA counts. Errors: ERR_INVALID (no such device; a precision that needs cuBLAS, which is not there),
 * ERR_FATAL. */
struct kctx *cuda_make(int device, enum precision precision, enum element element,
                       struct err *err) MUST_CHECK;

static inline struct cuda *cuda_of(struct kctx *ctx)
{
    return (struct cuda *)ctx;
}

/* Keep a failure, unless there is one already. `where` is static. */
void cuda_note(struct cuda *c, cudaError_t e, const char *where);

/* side.c: the other streams. open: a CUDA error, or success; free accepts what was never opened. */
cudaError_t cuda_side_open(struct cuda *c);
void cuda_side_free(struct cuda *c);
void cuda_fork(struct kctx *ctx);
void cuda_join(struct kctx *ctx);
void *cuda_side_stream(struct kctx *ctx);

/* What an operation queues between begin and end runs beside what it queues between end and join, on another stream with parts
 * of its own. Neither may write what the other reads. After join all is in order again: no buffer has to outlive the call. */
void cuda_second_begin(struct cuda *c);
void cuda_second_end(struct cuda *c);
void cuda_second_join(struct cuda *c);

/* The reserved scratch memory; one that is too small aborts, as on the CPU. */
void *cuda_scratch(struct cuda *c, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
