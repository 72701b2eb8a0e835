/* side.c - a second CUDA stream beside the context's own, for waiting on other GPUs while this one computes.
 *
 * Its priority is the highest there is: a collective needs few multiprocessors, and every rank waits for the last one to
 * begin. Events order the two; while the first is recorded they pull the second into the recording.
 */
#include "kernels/cuda/cuda.h"

cudaError_t cuda_side_open(struct cuda *c)
{
    int least = 0;
    int greatest = 0;
    cudaError_t e = cudaDeviceGetStreamPriorityRange(&least, &greatest);

    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&c->side, cudaStreamNonBlocking, greatest);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&c->forked, cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&c->joined, cudaEventDisableTiming);
    return e;
}

void cuda_side_free(struct cuda *c)
{
    if (c->side)
        (void)cudaStreamSynchronize(c->side);
    if (c->forked)
        (void)cudaEventDestroy(c->forked);
    if (c->joined)
        (void)cudaEventDestroy(c->joined);
    if (c->side)
        (void)cudaStreamDestroy(c->side);
}

static void order(struct cuda *c, cudaEvent_t event, cudaStream_t before, cudaStream_t behind)
{
    cuda_note(c, cudaEventRecord(event, before), "two queues");
    cuda_note(c, cudaStreamWaitEvent(behind, event, 0), "two queues");
}

void cuda_fork(struct kctx *ctx)
{
    struct cuda *c = cuda_of(ctx);

    order(c, c->forked, c->stream, c->side);
}

void cuda_join(struct kctx *ctx)
{
    struct cuda *c = cuda_of(ctx);

    order(c, c->joined, c->side, c->stream);
}

void *cuda_side_stream(struct kctx *ctx)
{
    return cuda_of(ctx)->side;
}
