/* fake_nccl.c - NCCL's functions among processes, in host memory: a segment that rank 0 makes and the others map. */
#include "fake_nccl.h"
#include "fake_nccl_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef FAKE_VERSION
#define FAKE_VERSION NCCL_VERSION_CODE
#endif

static struct fake_nccl_counts counts;

const struct fake_nccl_counts *fake_nccl_counts(void)
{
    return &counts;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = FAKE_VERSION;
    return ncclSuccess;
}

static void read_fault(struct ncclComm *c)
{
    const char *text = getenv("FAKE_NCCL");

    c->fault_rank = -1;
    if (text)
        (void)sscanf(text, "%15[^:]:%d:%u", c->fault, &c->fault_rank, &c->fault_call);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct ncclComm for_fault = {0};
    int fd = memfd_create("fake-nccl", 0);

    read_fault(&for_fault);
    if (faulty(&for_fault, "no-id") || fd < 0 || ftruncate(fd, sizeof(struct segment)))
        return ncclSystemError;
    *id = (ncclUniqueId){{0}};
    snprintf(id->internal, sizeof(id->internal), "/proc/%d/fd/%d", (int)getpid(), fd);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int world, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    FILE *f = fopen(id.internal, "r+");
    struct ncclComm *c = calloc(1, sizeof(*c));

    if (!c || !f || world > RANKS || config->blocking != 0)
        return ncclInvalidArgument;
    *c = (struct ncclComm){.rank = rank, .world = world, .state = ncclInProgress};
    read_fault(c);
    if (faulty(c, "no-init")) {
        fclose(f);
        free(c);
        return ncclInvalidUsage;
    }
    c->shared = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    fclose(f);
    if (c->shared == MAP_FAILED)
        abort();
    if (!faulty(c, "late-init"))
        atomic_fetch_add(&c->shared->joined, 1);
    *ret = c;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    if (!c->met && atomic_load(&c->shared->joined) == c->world) {
        c->met = true;
        c->state = ncclSuccess;
    }
    if (c->window_to && c->looks_left-- <= 0) {
        counts.windows++;
        counts.windows_made++;
        *c->window_to = c->window;
        c->window_to = NULL;
        c->state = ncclSuccess;
    }
    if (c->untaken && c->looks_left-- <= 0) {
        fake_stream_push(c->untaken_on, fake_nccl_step, c->untaken);
        c->untaken = NULL;
        c->state = ncclSuccess;
    }
    *state = c->state;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r)
{
    return r == ncclRemoteError    ? "remote process exited or there was a network error"
           : r == ncclSystemError  ? "unhandled system error"
           : r == ncclInvalidUsage ? "invalid usage"
                                   : "another error";
}

const char *ncclGetLastError(ncclComm_t c)
{
    (void)c;
    return "the fake's own words";
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    counts.finalized++;
    c->state = faulty(c, "no-finalize") ? ncclInProgress : ncclSuccess;
    return c->state;
}

static void comm_free(ncclComm_t c)
{
    munmap(c->shared, sizeof(*c->shared));
    free(c);
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    counts.destroyed++;
    comm_free(c);
    return ncclSuccess;
}

/* As the real NCCL may do, in another thread; queued steps still use the communicator, which therefore stays. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    counts.aborted++;
    while (faulty(c, "hang"))
        pause();
    c->aborted = true;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **ret, size_t bytes)
{
    counts.allocated++;
    return cudaMalloc(ret, bytes) == cudaSuccess && (uintptr_t)*ret % NCCL_WIN_REQUIRED_ALIGNMENT == 0
               ? ncclSuccess
               : ncclSystemError;
}

ncclResult_t ncclMemFree(void *p)
{
    counts.allocated--;
    (void)cudaFree(p);
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t c, void *p, size_t bytes, void **handle)
{
    (void)c, (void)bytes;
    counts.registered++;
    counts.registered_made++;
    *handle = p;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t c, void *handle)
{
    (void)c, (void)handle;
    counts.registered--;
    return ncclSuccess;
}

#if FAKE_VERSION >= 22700
ncclResult_t ncclCommWindowRegister(ncclComm_t c, void *p, size_t bytes, ncclWindow_t *win, int flags)
{
    *win = NULL;
    if (faulty(c, "no-window"))
        return ncclSuccess;
    if (faulty(c, "bad-window") || bytes % NCCL_WIN_REQUIRED_ALIGNMENT || flags != NCCL_WIN_COLL_SYMMETRIC)
        return ncclInvalidUsage;
    c->window = p;
    c->window_to = win;
    c->looks_left = 5;
    c->state = ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t c, ncclWindow_t win)
{
    (void)c, (void)win;
    counts.windows--;
    return ncclSuccess;
}
#endif
