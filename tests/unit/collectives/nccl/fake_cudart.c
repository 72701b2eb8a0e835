/* fake_cudart.c - the few functions of CUDA's runtime that the table over NCCL calls. */
#include "fake_cudart.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 256, MEMORY_ALIGN = 4096 };

struct step {
    bool (*run)(void *arg);
    void *arg;
};

struct CUstream_st {
    struct step steps[STEPS_MAX]; /* a ring */
    unsigned long pushed, done;
    cudaError_t error;
};

struct CUevent_st {
    struct CUstream_st *stream;
    unsigned long until;
};

struct fill {
    void *to;
    int value;
    size_t n;
};

void fake_stream_push(cudaStream_t s, bool (*run)(void *arg), void *arg)
{
    if (s->pushed - s->done == STEPS_MAX)
        abort();
    s->steps[s->pushed++ % STEPS_MAX] = (struct step){run, arg};
}

bool fake_stream_records(cudaStream_t s)
{
    (void)s;
    return false;
}

void fake_stream_break(cudaStream_t s, cudaError_t error)
{
    s->error = error;
}

static void proceed(struct CUstream_st *s)
{
    while (s->done < s->pushed && s->steps[s->done % STEPS_MAX].run(s->steps[s->done % STEPS_MAX].arg))
        s->done++;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    (void)flags;
    *ret = calloc(1, sizeof(**ret));
    return *ret ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    free(s);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    (void)flags;
    *ret = calloc(1, sizeof(**ret));
    return *ret ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    free(e);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    *e = (struct CUevent_st){s, s->pushed};
    return s->error;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    if (!e->stream)
        return cudaSuccess;
    proceed(e->stream);
    if (e->stream->error)
        return e->stream->error;
    return e->stream->done >= e->until ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
    *ret = aligned_alloc(MEMORY_ALIGN, (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN);
    if (*ret)
        memset(*ret, 0x5a, bytes); /* not zero, as a GPU's memory need not be */
    return *ret ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}

static bool fill(void *arg)
{
    struct fill *f = arg;

    memset(f->to, f->value, f->n);
    free(f);
    return true;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t s)
{
    struct fill *f = malloc(sizeof(*f));

    if (!f)
        return cudaErrorMemoryAllocation;
    *f = (struct fill){to, value, n};
    fake_stream_push(s, fill, f);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "some error";
}
