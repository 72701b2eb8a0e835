/* cudart.cc - the part of CUDA's runtime that we call, on a GPU that is none.
 *
 * As late as it may: work is done when somebody waits for its stream, and not before, so a result that is read without
 * waiting is not there yet. As far away as it may: device memory can be touched by queued work alone, anyone else who
 * does so is killed, and behind every piece of it lies a page that nobody may touch. What a stream is told while it is
 * being captured goes into the graph.
 */
#include "cudart.h"
#include "emulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

enum { PAUSE_US = 100 };

/* False: not done yet, to be asked again. */
typedef std::function<bool()> piece_of_work;

struct CUgraph_st {
    std::vector<piece_of_work> work;
};

struct CUgraphExec_st : CUgraph_st {
};

/* Work of which stream it stands behind, and how much of it. */
struct CUevent_st {
    CUstream_st *stream;
    size_t behind;
    bool asked;
};

struct CUstream_st {
    std::vector<piece_of_work> pending;
    size_t done;
    CUgraph_st *capture;
};

namespace
{

struct piece {
    char *map, *p;
    size_t map_bytes;
};

struct runtime {
    std::vector<piece> pieces;
    int open; /* how many run queued work right now */
    char fails[64];
    int left; /* calls until it does */
    cudaError_t last;
} r;

bool fails(const char *function)
{
    if (strcmp(r.fails, function) != 0 || r.left-- > 0)
        return false;
    r.fails[0] = '\0';
    return true;
}

void allow(int protection)
{
    for (const piece &a : r.pieces)
        if (mprotect(a.map, a.map_bytes, protection) != 0)
            abort();
}

/* The first n pieces of what waits, or as many of them as are done without waiting for other ranks. */
void run_some(CUstream_st *s, size_t n, bool patient)
{
    size_t done = 0;

    if (!r.open++)
        allow(PROT_READ | PROT_WRITE);
    while (done < n) {
        piece_of_work next = s->pending[done];
        if (next())
            done++;
        else if (usleep(PAUSE_US) != 0 || !patient) /* another rank's turn */
            break;
    }
    if (!--r.open)
        allow(PROT_NONE);
    s->pending.erase(s->pending.begin(), s->pending.begin() + (long)done);
    s->done += done;
}

/* What the runtime remembers until somebody asks (cudaGetLastError): every answer but success, even "not ready". */
cudaError_t told(cudaError_t e)
{
    if (e != cudaSuccess)
        r.last = e;
    return e;
}

/* New memory holds NaN. */
void spoil(char *map, size_t bytes)
{
    if (mprotect(map, bytes, PROT_READ | PROT_WRITE) != 0)
        abort();
    memset(map, 0xff, bytes);
    if (!r.open && mprotect(map, bytes, PROT_NONE) != 0)
        abort();
}

void queue(cudaStream_t stream, piece_of_work work)
{
    if (stream->capture)
        stream->capture->work.push_back(work);
    else
        stream->pending.push_back(work);
}

} // namespace

void fake_cudart_fail(const char *function, int calls)
{
    snprintf(r.fails, sizeof(r.fails), "%s", function);
    r.left = calls;
}

int fake_cudart_pieces(void)
{
    return (int)r.pieces.size();
}

void emulate_queue(cudaStream_t stream, std::function<void()> work)
{
    queue(stream, [=] {
        work();
        return true;
    });
}

void fake_stream_push(cudaStream_t stream, bool (*step)(void *arg), void *arg)
{
    queue(stream, [=] { return step(arg); });
}

bool fake_stream_records(cudaStream_t stream)
{
    return stream->capture != nullptr;
}

extern "C" {

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
    if (fails("cudaMalloc") || bytes > (size_t)1 << 40)
        return told(cudaErrorMemoryAllocation);
    if (bytes == 0) {
        *ret = nullptr;
        return cudaSuccess;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (bytes + page - 1) / page * page;
    char *map = (char *)mmap(nullptr, body + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    /* As near to the page behind as CUDA's alignment lets us. */
    r.pieces.push_back(piece{map, map + (body - bytes) / 256 * 256, body});
    *ret = r.pieces.back().p;
    spoil(map, body);
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    for (size_t i = 0; p && i < r.pieces.size(); i++) {
        if (r.pieces[i].p != p)
            continue;
        munmap(r.pieces[i].map, r.pieces[i].map_bytes + (size_t)sysconf(_SC_PAGESIZE));
        r.pieces.erase(r.pieces.begin() + (long)i);
        return cudaSuccess;
    }
    return p ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaMallocHost(void **ret, size_t bytes)
{
    if (fails("cudaMallocHost") || !(*ret = calloc(1, bytes)))
        return told(cudaErrorMemoryAllocation);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind,
                            cudaStream_t stream)
{
    if (fails("cudaMemcpyAsync"))
        return cudaErrorInvalidValue;
    emulate_queue(stream, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t stream)
{
    emulate_queue(stream, [=] { memset(p, byte, bytes); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned)
{
    *ret = new CUstream_st();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (stream->capture)
        return cudaErrorStreamCaptureUnsupported;
    run_some(stream, stream->pending.size(), true);
    return fails("cudaStreamSynchronize") ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned)
{
    *ret = new CUevent_st{};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (stream->capture)
        return cudaErrorStreamCaptureUnsupported;
    *event = CUevent_st{stream, stream->done + stream->pending.size(), false};
    return cudaSuccess;
}

/* Never done when it is asked for the first time. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    CUstream_st *s = event->stream;
    bool first = !event->asked;
    if (!s || event->behind <= s->done)
        return cudaSuccess;
    event->asked = true;
    if (!first)
        run_some(s, event->behind - s->done, false);
    return event->behind <= s->done ? cudaSuccess : told(cudaErrorNotReady);
}

/* What stands behind the mark is not done. */
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    CUstream_st *s = event->stream;
    if (!s || event->behind <= s->done)
        return cudaSuccess;
    run_some(s, event->behind - s->done, true);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    if (stream->capture || mode != cudaStreamCaptureModeThreadLocal)
        return cudaErrorIllegalState;
    stream->capture = new CUgraph_st();
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *ret)
{
    *ret = stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret)
{
    *ret = stream->capture;
    stream->capture = nullptr;
    if (!*ret)
        return cudaErrorIllegalState;
    if (!fails("cudaStreamEndCapture"))
        return cudaSuccess;
    delete *ret;
    *ret = nullptr;
    return cudaErrorStreamCaptureInvalidated;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long)
{
    if (fails("cudaGraphInstantiate"))
        return cudaErrorMemoryAllocation;
    *ret = new CUgraphExec_st();
    (*ret)->work = graph->work;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (fails("cudaGraphLaunch"))
        return cudaErrorLaunchFailure;
    for (auto &each : exec->work)
        queue(stream, each);
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device >= 0 && device < FAKE_CUDART_DEVICES ? cudaSuccess : told(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int)
{
    memset(ret, 0, sizeof(*ret));
    snprintf(ret->name, sizeof(ret->name), "emulated");
    ret->major = 9;
    ret->multiProcessorCount = 4;
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    return r.last;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t last = r.last;
    r.last = cudaSuccess;
    return last;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation ? "out of memory"
           : e == cudaErrorInvalidDevice  ? "invalid device ordinal"
           : e == cudaErrorNotReady       ? "device not ready"
                                          : "an error of the fake runtime";
}
}
