/* side.c - CUDA streams beside the context's own: one for waiting on other GPUs while this one computes, one for a second
 * operation beside a first.
 *
 * The first has the highest priority there is: a collective needs few multiprocessors, and every rank waits for the last one
 * to begin. Events order them; while the context's own is recorded they pull the others into the recording.
 */
#include "kernels/cuda/cuda.h"

static cudaError_t open_side(struct cuda_side *s, int priority)
{
    cudaError_t e = cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking, priority);

    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&s->forked, cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&s->joined, cudaEventDisableTiming);
    return e;
}

cudaError_t cuda_side_open(struct cuda *c)
{
    int least = 0;
    int greatest = 0;
    cudaError_t e = cudaDeviceGetStreamPriorityRange(&least, &greatest);

    if (e == cudaSuccess)
        e = open_side(&c->side, greatest);
    if (e == cudaSuccess)
        e = open_side(&c->second, least);
    return e;
}

static void free_side(struct cuda_side *s)
{
    if (s->stream)
        (void)cudaStreamSynchronize(s->stream);
    if (s->forked)
        (void)cudaEventDestroy(s->forked);
    if (s->joined)
        (void)cudaEventDestroy(s->joined);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
}

void cuda_side_free(struct cuda *c)
{
    free_side(&c->side);
    free_side(&c->second);
}

static void order(struct cuda *c, cudaEvent_t event, cudaStream_t before, cudaStream_t behind)
{
    cuda_note(c, cudaEventRecord(event, before), "two queues");
    cuda_note(c, cudaStreamWaitEvent(behind, event, 0), "two queues");
}

void cuda_fork(struct kctx *ctx)
{
    struct cuda *c = cuda_of(ctx);

    order(c, c->side.forked, c->stream, c->side.stream);
}

void cuda_join(struct kctx *ctx)
{
    struct cuda *c = cuda_of(ctx);

    order(c, c->side.joined, c->side.stream, c->stream);
}

void *cuda_side_stream(struct kctx *ctx)
{
    return cuda_of(ctx)->side.stream;
}

static void swap(struct cuda *c)
{
    const cudaStream_t stream = c->stream;
    void *const parts = c->parts;

    c->stream = c->second.stream;
    c->parts = c->second_parts;
    c->second.stream = stream;
    c->second_parts = parts;
}

void cuda_second_begin(struct cuda *c)
{
    order(c, c->second.forked, c->stream, c->second.stream);
    swap(c);
}

void cuda_second_end(struct cuda *c)
{
    swap(c);
}

void cuda_second_join(struct cuda *c)
{
    order(c, c->second.joined, c->second.stream, c->stream);
}
