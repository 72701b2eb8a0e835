/* streams.cc - streams, events and graphs on an emulated GPU.
 *
 * Work is done as late as possible: when somebody waits for its stream. So a result that is read without waiting is not
 * there yet, and a stream for which no other one waits has not begun. With FAKE_STREAMS=early in the environment, whenever
 * one stream runs, all others first run as far as they can: a stream that lacks a wait has begun too soon. Work for a
 * stream that is being captured goes into the graph, and so does work for streams that wait for an event of it; each
 * stream is a lane of the graph.
 */
#include "cudart.h"
#include "emulate.h"
#include "runtime.h"

#include <deque>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vector>

/* A stream that waits for another rank is polled again after a pause. It doubles while the answer is "not yet": each time costs
 * two changes of the memory's protection, and the other rank may want the same processor. */
const unsigned PAUSE_US = 100, PAUSE_MAX_US = 2000;

/* False: not done yet, to be polled again. */
typedef std::function<bool()> piece_of_work;

struct CUstream_st {
    std::deque<piece_of_work> pending;
    size_t done;
    bool busy; /* somebody further up runs it */
    CUgraph_st *capture;
    size_t lane;
};

/* Work, or the wait for so much of a lane. */
struct graph_item {
    piece_of_work work;
    size_t lane, count;
};

struct graph_lane {
    CUstream_st *stream;
    std::vector<graph_item> items;
    size_t joined; /* how much of it the first lane waits for */
};

struct CUgraph_st {
    std::vector<graph_lane> lanes; /* the first: of the stream that is captured */
};

struct CUgraphExec_st : CUgraph_st {
    std::vector<CUstream_st *> own; /* where lanes run; the first: none, that is the launch's */
};

/* Work of which stream it stands behind, and how much of it; or of which lane. */
struct CUevent_st {
    CUstream_st *stream;
    size_t behind;
    bool asked;
    CUgraph_st *graph;
    size_t lane;
};

namespace
{

std::vector<CUstream_st *> all_streams;
unsigned pause_us = PAUSE_US;

CUstream_st *make_stream()
{
    all_streams.push_back(new CUstream_st());
    return all_streams.back();
}

void destroy_stream(CUstream_st *s)
{
    for (size_t i = 0; i < all_streams.size(); i++)
        if (all_streams[i] == s)
            all_streams.erase(all_streams.begin() + (long)i);
    delete s;
}

bool run_first(CUstream_st *s)
{
    piece_of_work next = s->pending.front();

    if (!next())
        return false;
    s->pending.pop_front();
    s->done++;
    pause_us = PAUSE_US;
    return true;
}

void pause_for_peer()
{
    (void)usleep(pause_us);
    pause_us = pause_us * 2 < PAUSE_MAX_US ? pause_us * 2 : PAUSE_MAX_US;
}

void run_others_early()
{
    const char *how = getenv("FAKE_STREAMS");

    if (!how || strcmp(how, "early") != 0)
        return;
    for (size_t i = 0; i < all_streams.size(); i++) {
        CUstream_st *s = all_streams[i];
        if (s->busy)
            continue;
        s->busy = true;
        while (!s->pending.empty() && run_first(s))
            continue;
        s->busy = false;
    }
}

/* Until it has done so much in all. False: another rank's turn. */
bool run_until(CUstream_st *s, size_t done, bool patient)
{
    if (s->busy)
        return s->done >= done;
    s->busy = true;
    fake_memory_open();
    while (s->done < done) {
        run_others_early();
        if (run_first(s))
            continue;
        pause_for_peer();
        if (!patient)
            break;
    }
    fake_memory_close();
    s->busy = false;
    return s->done >= done;
}

size_t end_of(const CUstream_st *s)
{
    return s->done + s->pending.size();
}

void queue(CUstream_st *s, piece_of_work work)
{
    if (s->capture)
        s->capture->lanes[s->lane].items.push_back(graph_item{work, 0, 0});
    else
        s->pending.push_back(work);
}

void wait_for(CUstream_st *s, CUstream_st *other, size_t done)
{
    s->pending.push_back([=] { return run_until(other, done, false); });
}

/* A stream that waits for an event of a captured one is captured, too. */
cudaError_t wait_captured(CUstream_st *s, const CUevent_st *e)
{
    if (!s->capture) {
        s->capture = e->graph;
        s->lane = e->graph->lanes.size();
        e->graph->lanes.push_back(graph_lane{s, {}, 0});
    }
    if (s->capture != e->graph)
        return cudaErrorStreamCaptureMerge;
    s->capture->lanes[s->lane].items.push_back(graph_item{nullptr, e->lane, e->behind});
    if (s->lane == 0)
        s->capture->lanes[e->lane].joined = e->behind;
    return cudaSuccess;
}

} // namespace

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

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned)
{
    *ret = make_stream();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5; /* an H100's */
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret, unsigned, int priority)
{
    if (fake_fails("cudaStreamCreateWithPriority") || priority < -5 || priority > 0)
        return fake_told(cudaErrorInvalidValue);
    *ret = make_stream();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    destroy_stream(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (stream->capture)
        return cudaErrorStreamCaptureUnsupported;
    run_until(stream, end_of(stream), true);
    return fake_fails("cudaStreamSynchronize") ? cudaErrorLaunchFailure : cudaSuccess;
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
    CUgraph_st *graph = stream->capture;

    *event = graph ? CUevent_st{stream, graph->lanes[stream->lane].items.size(), false, graph, stream->lane}
                   : CUevent_st{stream, end_of(stream), false, nullptr, 0};
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (fake_fails("cudaStreamWaitEvent"))
        return fake_told(cudaErrorInvalidResourceHandle);
    if (!event->stream)
        return cudaSuccess;
    if (event->graph)
        return wait_captured(stream, event);
    if (stream->capture)
        return cudaErrorStreamCaptureIsolation;
    wait_for(stream, event->stream, event->behind);
    return cudaSuccess;
}

/* Never done when it is requested the first time. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    CUstream_st *s = event->stream;
    bool first = !event->asked;
    if (event->graph)
        return fake_told(cudaErrorCapturedEvent);
    if (!s || event->behind <= s->done)
        return cudaSuccess;
    event->asked = true;
    if (!first)
        run_until(s, event->behind, false);
    return event->behind <= s->done ? cudaSuccess : fake_told(cudaErrorNotReady);
}

/* What stands behind the mark is not done. */
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->graph)
        return fake_told(cudaErrorCapturedEvent);
    if (event->stream)
        run_until(event->stream, event->behind, true);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    if (stream->capture || mode != cudaStreamCaptureModeThreadLocal)
        return cudaErrorIllegalState;
    stream->capture = new CUgraph_st{{graph_lane{stream, {}, 0}}};
    stream->lane = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *ret)
{
    *ret = stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret)
{
    CUgraph_st *graph = stream->capture;
    cudaError_t e = cudaSuccess;

    *ret = nullptr;
    if (!graph || stream->lane != 0)
        return cudaErrorIllegalState;
    for (size_t i = 0; i < graph->lanes.size(); i++) {
        const graph_lane &lane = graph->lanes[i];
        lane.stream->capture = nullptr;
        if (i > 0 && lane.joined < lane.items.size())
            e = cudaErrorStreamCaptureUnjoined;
    }
    if (fake_fails("cudaStreamEndCapture"))
        e = cudaErrorStreamCaptureInvalidated;
    if (e == cudaSuccess)
        *ret = graph;
    else
        delete graph;
    return e;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long)
{
    if (fake_fails("cudaGraphInstantiate"))
        return cudaErrorMemoryAllocation;
    *ret = new CUgraphExec_st();
    (*ret)->lanes = graph->lanes;
    for (size_t i = 0; i < graph->lanes.size(); i++)
        (*ret)->own.push_back(i > 0 ? make_stream() : nullptr);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    for (CUstream_st *s : exec->own) {
        if (!s)
            continue;
        if (!s->pending.empty())
            emulate_broken("a graph that is given up while it runs");
        destroy_stream(s);
    }
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    std::vector<CUstream_st *> on = exec->own;
    std::vector<size_t> before;

    if (fake_fails("cudaGraphLaunch"))
        return cudaErrorLaunchFailure;
    on[0] = stream;
    for (const CUstream_st *s : on)
        before.push_back(end_of(s));
    for (size_t i = 0; i < on.size(); i++)
        for (const graph_item &item : exec->lanes[i].items) {
            if (item.work)
                on[i]->pending.push_back(item.work);
            else
                wait_for(on[i], on[item.lane], before[item.lane] + item.count);
        }
    return cudaSuccess;
}
}
