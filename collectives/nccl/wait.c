/* wait.c - wait for queued work on the GPU until it is done, NCCL reports an error, a rank dies or the deadline
 * passes; abort the communicator. */
#include "collectives/nccl/nccl_state.h"
#include "common/clock.h"
#include "common/thread.h"
#include "host/rank_state.h"

#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* The abort thread's own copy of what it needs, because it may outlive the table. */
struct abort_job {
    __typeof__(&ncclCommAbort) abort;
    ncclComm_t comm;
};

static void *abort_main(void *arg)
{
    struct abort_job job = *(struct abort_job *)arg;

    free(arg);
    (void)job.abort(job.comm);
    return NULL;
}

/* Run ncclCommAbort in a thread: it first makes the kernels end, then waits for graphs and for NCCL's threads. */
static void abort_for_a_while(struct nccl *n)
{
    struct abort_job *job = n->comm ? malloc(sizeof(*job)) : NULL;
    struct timespec until;
    pthread_t thread;

    if (!job)
        return;
    *job = (struct abort_job){n->api.abort, n->comm};
    n->comm = NULL;
    if (thread_start(&thread, abort_main, job)) {
        free(job);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += NCCL_ABORT_MS / 1000;
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until))
        pthread_detach(thread);
}

int nccl_begin(const struct nccl *n, struct err *err)
{
    if (!n->table.lost)
        return 0;
    *err = n->failed;
    return -1;
}

int nccl_fail(struct nccl *n, const struct err *err)
{
    if (n->table.lost)
        return -1;
    n->table.lost = true;
    n->failed = *err;
    abort_for_a_while(n);
    return -1;
}

static enum err_kind kind_of(ncclResult_t r)
{
    switch (r) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
        return ERR_INVALID;
    case ncclRemoteError:
        return ERR_PEER;
    case ncclTimeout:
        return ERR_TIMEOUT;
    case ncclSuccess:
    case ncclInProgress:
    case ncclUnhandledCudaError:
    case ncclSystemError:
    case ncclInternalError:
    case ncclNumResults:
        break;
    }
    return ERR_TRANSIENT; /* a retry, perhaps on another node, may succeed */
}

int nccl_check(const struct nccl *n, ncclResult_t r, const char *what, struct err *err)
{
    const char *last;

    if (r == ncclSuccess)
        return 0;
    last = n->api.get_last_error(n->comm);
    return err_set(err, kind_of(r), "%s: NCCL: %s%s%s", what, n->api.get_error_string(r),
                   last && *last ? ": " : "", last ? last : "");
}

/* Get the communicator's state; ncclInProgress is no error. */
static int look_at_nccl(struct nccl *n, const char *what, ncclResult_t *state, struct err *err)
{
    ncclResult_t r = n->api.get_async_error(n->comm, state);

    if (r != ncclSuccess)
        return nccl_check(n, r, what, err);
    return *state == ncclInProgress ? 0 : nccl_check(n, *state, what, err);
}

static void pause_for(int turn)
{
    enum { SPINS = 256, YIELDS = 2048 };

    if (turn < SPINS) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    } else if (turn < YIELDS) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

/* Check for errors while waiting: of NCCL at once, of a lost rank after NCCL_GRACE_MS. *gone_ms: when a rank was
 * first found missing; 0: none. */
static int bad_news(struct nccl *n, const char *what, int64_t now_ms, int64_t *gone_ms, struct err *err)
{
    ncclResult_t state;
    struct err gone;

    if (look_at_nccl(n, what, &state, err))
        return -1;
    if (!n->host->look(n->host, what, &gone))
        return 0;
    if (!*gone_ms)
        *gone_ms = now_ms;
    if (now_ms - *gone_ms < NCCL_GRACE_MS)
        return 0;
    *err = gone;
    return -1;
}

/* Whether the event's work, or without an event NCCL's last call, is done. -1: it failed. */
static int is_done(struct nccl *n, void *event, const char *what, struct err *err)
{
    const cudaError_t e = event ? cudaEventQuery(event) : cudaSuccess;
    ncclResult_t state = ncclSuccess;

    if (e && e != cudaErrorNotReady)
        return err_set(err, ERR_TRANSIENT, "%s: the GPU: %s", what, cudaGetErrorString(e));
    if (!event && look_at_nccl(n, what, &state, err))
        return -1;
    return e == cudaSuccess && state != ncclInProgress;
}

static int wait_for(struct nccl *n, void *event, const char *what, int64_t timeout_ms, struct err *err)
{
    const int64_t began_ms = clock_mono_ms();
    int64_t looked_ms = began_ms, gone_ms = 0;
    struct err why = {0}, ignored; /* the first failure is the cause */
    int done;

    for (int turn = 0; !(done = is_done(n, event, what, why.kind ? &ignored : &why)) && !why.kind;
         turn += turn < 1000000) {
        pause_for(turn);
        const int64_t now_ms = clock_mono_ms();
        if (now_ms - looked_ms >= NCCL_LOOK_MS) {
            looked_ms = now_ms;
            if (bad_news(n, what, now_ms, &gone_ms, &why))
                continue; /* once more: this process may have had no core meanwhile */
        }
        if (now_ms - began_ms >= timeout_ms && event)
            err_set(&why, ERR_TIMEOUT,
                    "%s: not done within %lld ms: the GPU is stuck, or waits for another rank", what,
                    (long long)timeout_ms);
        else if (now_ms - began_ms >= timeout_ms)
            err_set(&why, ERR_TIMEOUT, "%s: deadline passed: not all ranks have come", what);
    }
    if (done > 0)
        return 0;
    *err = why;
    return nccl_fail(n, &why);
}

int nccl_settle(struct nccl *n, ncclResult_t r, const char *what, int64_t deadline_ms, struct err *err)
{
    if (r == ncclInProgress)
        return wait_for(n, NULL, what, deadline_ms - clock_mono_ms(), err);
    if (nccl_check(n, r, what, err) == 0)
        return 0;
    return nccl_fail(n, err); /* every kind of error stays the communicator's state */
}

int nccl_wait(struct device_comm *c, void *event, const char *what, int64_t timeout_ms, struct err *err)
{
    struct nccl *n = c->state;

    if (nccl_begin(n, err))
        return -1;
    rank_state_begin(n->host->slot, RANK_CALL_DEVICE);
    const int rc = wait_for(n, event, what, timeout_ms, err);
    rank_state_end(n->host->slot);
    return rc;
}

int nccl_sync(struct device_comm *c, void *stream, const char *what, int64_t timeout_ms, struct err *err)
{
    struct nccl *n = c->state;

    if (nccl_begin(n, err))
        return -1;
    cudaError_t e = cudaEventRecord(n->event, stream);
    if (e) {
        err_set(err, ERR_TRANSIENT, "%s: the GPU: %s", what, cudaGetErrorString(e));
        return nccl_fail(n, err);
    }
    return nccl_wait(c, n->event, what, timeout_ms, err);
}
