/* buffer.c - allocate device memory and register it with NCCL: as a symmetric window where the library supports
 * it, else with ncclCommRegister. */
#include "collectives/nccl/nccl_state.h"
#include "common/clock.h"

#include <cuda_runtime_api.h>

enum { ALIGN = NCCL_WIN_REQUIRED_ALIGNMENT };

/* Register a window if NCCL supports one for these ranks (it then sets b->window), else the memory. All ranks
 * must register the same way, and NCCL does not detect a difference, so a failure makes the table `lost`. */
static int make_known(struct nccl *n, struct nccl_buffer *b, size_t bytes, int64_t deadline_ms,
                      struct err *err)
{
    static const char what[] = "registering a buffer";

    if (n->api.window_register && n->api.window_deregister) {
        ncclResult_t r =
            n->api.window_register(n->comm, b->memory, bytes, &b->window, NCCL_WIN_COLL_SYMMETRIC);
        /* NCCL returns success while one of its threads still registers. */
        if (nccl_settle(n, r == ncclSuccess ? ncclInProgress : r, what, deadline_ms, err))
            return -1;
    }
    if (b->window)
        return 0;
    return nccl_settle(n, n->api.comm_register(n->comm, b->memory, bytes, &b->handle), what, deadline_ms,
                       err);
}

/* Zero the buffer and run all_reduce on it, so that NCCL sets up its connections for this size now and not during
 * the capture of a graph. */
static int first_run(struct nccl *n, void *x, size_t bytes, int64_t timeout_ms, struct err *err)
{
    struct device_comm *c = &n->table;
    cudaError_t e = cudaMemsetAsync(x, 0, bytes, n->stream);

    if (e) {
        err_set(err, ERR_TRANSIENT, "zeroing a buffer: %s", cudaGetErrorString(e));
        return nccl_fail(n, err);
    }
    if (c->all_reduce(c, x, bytes / sizeof(float), DEVICE_F32, n->stream, err))
        return -1;
    return nccl_sync(c, n->stream, "a buffer's first all_reduce", timeout_ms, err);
}

void *nccl_buffer(struct device_comm *c, size_t bytes, int64_t timeout_ms, struct err *err)
{
    struct nccl *n = c->state;
    struct nccl_buffer *b = &n->buffers[n->n_buffers];
    size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN;

    if (nccl_begin(n, err))
        return NULL;
    if (n->n_buffers == DEVICE_BUFFERS_MAX) {
        err_set(err, ERR_INVALID, "more than %d buffers", DEVICE_BUFFERS_MAX);
        return NULL;
    }
    *b = (struct nccl_buffer){0};
    ncclResult_t r = n->api.mem_alloc(&b->memory, whole);
    if (r != ncclSuccess) {
        nccl_check(n, r, "no device memory for a buffer", err);
        nccl_fail(n, err); /* the other ranks register their buffers and would wait for this one */
        return NULL;
    }
    n->n_buffers++;
    if (make_known(n, b, whole, clock_mono_ms() + timeout_ms, err) ||
        first_run(n, b->memory, bytes, timeout_ms, err))
        return NULL;
    return b->memory;
}

void nccl_buffers_free(struct nccl *n)
{
    for (int i = n->n_buffers; i-- > 0;) {
        struct nccl_buffer *b = &n->buffers[i];
        if (b->window)
            (void)n->api.window_deregister(n->comm, b->window);
        else if (b->handle)
            (void)n->api.comm_deregister(n->comm, b->handle);
        (void)n->api.mem_free(b->memory);
    }
    n->n_buffers = 0;
}
