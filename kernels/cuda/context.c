/* context.c - make and free a GPU's context: its stream, memory and graphs. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cuda_note(struct cuda *c, cudaError_t e, const char *where)
{
    /* An event that was looked at before it was done is nobody's failure, whatever the runtime remembers of it. */
    if (e == cudaSuccess || e == cudaErrorNotReady || c->error != cudaSuccess)
        return;
    c->error = e;
    c->where = where;
}

static int failed(struct err *err, cudaError_t e, const char *where)
{
    return err_set(err, ERR_FATAL, "the GPU: %s: %s", where, cudaGetErrorString(e));
}

static const char *cuda_name(const struct kctx *ctx)
{
    return ((const struct cuda *)ctx)->name;
}

static int cuda_sync(struct kctx *ctx, struct err *err)
{
    struct cuda *c = cuda_of(ctx);

    cuda_note(c, cudaStreamSynchronize(c->stream), "while it computed");
    return c->error == cudaSuccess ? 0 : failed(err, c->error, c->where);
}

static void *cuda_alloc(struct kctx *ctx, size_t bytes, struct err *err)
{
    struct cuda *c = cuda_of(ctx);
    void *p = NULL;
    cudaError_t e = cudaMalloc(&p, bytes ? bytes : 1);

    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* told here; the next call shall not tell it again */
        err_set(err, ERR_FATAL, "the GPU has no memory for %zu bytes: %s", bytes, cudaGetErrorString(e));
        return NULL;
    }
    cuda_note(c, cudaMemsetAsync(p, 0, bytes, c->stream), "clearing memory");
    return p;
}

static void cuda_release(struct kctx *ctx, void *p)
{
    struct cuda *c = cuda_of(ctx);

    cuda_note(c, cudaStreamSynchronize(c->stream), "while it computed"); /* it may still be in use */
    cuda_note(c, cudaFree(p), "freeing memory");
}

static size_t cuda_room(struct kctx *ctx)
{
    size_t left = 0, all;

    cuda_note(cuda_of(ctx), cudaMemGetInfo(&left, &all), "asking for its memory");
    return left;
}

/* The process's memory is not pinned: it may be reused only when the copy is done. */
static void cuda_put(struct kctx *ctx, void *to, const void *host, size_t bytes)
{
    struct cuda *c = cuda_of(ctx);

    if (!bytes)
        return;
    cuda_note(c, cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, c->stream), "copying to it");
    cuda_note(c, cudaStreamSynchronize(c->stream), "while it computed");
}

static int cuda_get(struct kctx *ctx, void *host, const void *from, size_t bytes, struct err *err)
{
    struct cuda *c = cuda_of(ctx);

    if (bytes)
        cuda_note(c, cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, c->stream),
                  "copying from it");
    return cuda_sync(ctx, err);
}

static void cuda_copy(struct kctx *ctx, void *to, const void *from, size_t bytes)
{
    struct cuda *c = cuda_of(ctx);

    if (bytes && to != from)
        cuda_note(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, c->stream), "copying in it");
}

static void cuda_zero(struct kctx *ctx, void *p, size_t bytes)
{
    struct cuda *c = cuda_of(ctx);

    if (bytes)
        cuda_note(c, cudaMemsetAsync(p, 0, bytes, c->stream), "clearing memory");
}

static int cuda_reserve(struct kctx *ctx, size_t bytes, struct err *err)
{
    struct cuda *c = cuda_of(ctx);

    if (bytes <= c->scratch_bytes)
        return 0;
    void *p = cuda_alloc(ctx, bytes, err);
    if (!p)
        return -1;
    if (c->scratch)
        cuda_release(ctx, c->scratch);
    c->scratch = p;
    c->scratch_bytes = bytes;
    return 0;
}

void *cuda_scratch(struct cuda *c, size_t bytes)
{
    if (bytes > c->scratch_bytes)
        abort(); /* the caller reserved too little: writing on would corrupt memory */
    return c->scratch;
}

static int cuda_graph_begin(struct kctx *ctx, struct err *err)
{
    /* Thread-local: what other threads do with CUDA meanwhile (collectives) is their own business. */
    cudaError_t e = cudaStreamBeginCapture(cuda_of(ctx)->stream, cudaStreamCaptureModeThreadLocal);

    return e == cudaSuccess ? 0 : failed(err, e, "recording a step");
}

static struct device_graph *cuda_graph_end(struct kctx *ctx, struct err *err)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t e = cudaStreamEndCapture(cuda_of(ctx)->stream, &graph);

    if (e == cudaSuccess)
        e = cudaGraphInstantiate(&exec, graph, 0);
    if (graph)
        (void)cudaGraphDestroy(graph);
    if (e == cudaSuccess)
        return (struct device_graph *)exec;
    failed(err, e, "recording a step");
    return NULL;
}

static int cuda_graph_launch(struct kctx *ctx, struct device_graph *graph, struct err *err)
{
    cudaError_t e = cudaGraphLaunch((cudaGraphExec_t)graph, cuda_of(ctx)->stream);

    return e == cudaSuccess ? 0 : failed(err, e, "a step");
}

static void cuda_graph_free(struct kctx *ctx, struct device_graph *graph)
{
    struct cuda *c = cuda_of(ctx);

    cuda_note(c, cudaStreamSynchronize(c->stream), "while it computed");
    cuda_note(c, cudaGraphExecDestroy((cudaGraphExec_t)graph), "freeing a recorded step");
}

static void *cuda_shared(struct kctx *ctx, size_t bytes, struct err *err)
{
    void *p = NULL;
    cudaError_t e = cudaMallocHost(&p, bytes);

    (void)ctx;
    if (e == cudaSuccess)
        return memset(p, 0, bytes);
    (void)cudaGetLastError();
    err_memory(err, "no memory for %zu bytes beside the GPU: %s", bytes, cudaGetErrorString(e));
    return NULL;
}

static void cuda_shared_free(struct kctx *ctx, void *p)
{
    struct cuda *c = cuda_of(ctx);

    cuda_note(c, cudaStreamSynchronize(c->stream), "while it computed");
    cuda_note(c, cudaFreeHost(p), "freeing memory");
}

static void cuda_mark(struct kctx *ctx, int i)
{
    struct cuda *c = cuda_of(ctx);

    cuda_note(c, cudaEventRecord(c->mark[i], c->stream), "marking a step");
}

static int cuda_wait(struct kctx *ctx, int i, struct err *err)
{
    struct cuda *c = cuda_of(ctx);

    cuda_note(c, cudaEventSynchronize(c->mark[i]), "while it computed");
    return c->error == cudaSuccess ? 0 : failed(err, c->error, c->where);
}

static void *cuda_event(struct kctx *ctx, int i)
{
    return cuda_of(ctx)->mark[i];
}

static void *cuda_stream(struct kctx *ctx)
{
    return cuda_of(ctx)->stream;
}

static void cuda_free(struct kctx *ctx)
{
    struct cuda *c = cuda_of(ctx);

    if (c->stream)
        (void)cudaStreamSynchronize(c->stream);
    cuda_side_free(c);
    matmul_free(c->matmul);
    (void)cudaFree(c->parts);
    (void)cudaFree(c->second_parts);
    (void)cudaFree(c->scratch);
    for (int i = 0; i < DEVICE_MARKS && c->mark[i]; i++)
        (void)cudaEventDestroy(c->mark[i]);
    if (c->stream)
        (void)cudaStreamDestroy(c->stream);
    free(c);
}

static const struct kernel_ops cuda_ops = {.name = cuda_name,
                                           .free = cuda_free,
                                           .reserve = cuda_reserve,
                                           .alloc = cuda_alloc,
                                           .release = cuda_release,
                                           .room = cuda_room,
                                           .put = cuda_put,
                                           .get = cuda_get,
                                           .copy = cuda_copy,
                                           .zero = cuda_zero,
                                           .sync = cuda_sync,
                                           .shared = cuda_shared,
                                           .shared_free = cuda_shared_free,
                                           .mark = cuda_mark,
                                           .wait = cuda_wait,
                                           .event = cuda_event,
                                           .stream = cuda_stream,
                                           .fork = cuda_fork,
                                           .join = cuda_join,
                                           .side = cuda_side_stream,
                                           .graph_begin = cuda_graph_begin,
                                           .graph_end = cuda_graph_end,
                                           .graph_launch = cuda_graph_launch,
                                           .graph_free = cuda_graph_free,
#define KERNEL_CUDA_ROW(op) .op = cuda_##op,
                                           KERNEL_OPS(KERNEL_CUDA_ROW) KERNEL_QUEUED(KERNEL_CUDA_ROW)
#undef KERNEL_CUDA_ROW
};

static int open_device(struct cuda *c, struct err *err)
{
    struct cudaDeviceProp about;
    cudaError_t e = cudaSetDevice(c->device);

    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&about, c->device);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    for (int i = 0; i < DEVICE_MARKS && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&c->mark[i], cudaEventDisableTiming);
    if (e == cudaSuccess)
        e = cuda_side_open(c);
    if (e != cudaSuccess)
        return err_set(err, ERR_INVALID, "GPU %d: %s", c->device, cudaGetErrorString(e));
    c->sms = about.multiProcessorCount;
    snprintf(c->name, sizeof(c->name), "%s (sm_%d%d)", about.name, about.major, about.minor);
    return 0;
}

struct kctx *cuda_make(int device, enum precision precision, enum element element, struct err *err)
{
    struct cuda *c = calloc(1, sizeof(*c));

    if (!c) {
        err_memory(err, "out of memory");
        return NULL;
    }
    c->ctx = (struct kctx){&cuda_ops, element};
    c->device = device;
    c->precision = precision;
    struct kctx *ctx = &c->ctx;
    if (open_device(c, err) || !(c->parts = cuda_alloc(ctx, CUDA_PARTS_ALL, err)) ||
        !(c->second_parts = cuda_alloc(ctx, CUDA_PARTS_ALL, err)) ||
        !(c->matmul = matmul_make(c->precision, err)) || cuda_sync(ctx, err)) {
        cuda_free(ctx);
        return NULL;
    }
    return ctx;
}
