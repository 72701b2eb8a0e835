/* nccl_state.h - struct nccl and its functions, which only the files of collectives/nccl use.
 *
 * Ownership: struct nccl owns the communicator, its buffers, a stream and an event. When the table is lost, the
 *            abort thread owns the communicator, and device memory, stream and event are not freed.
 */
#ifndef TK_COLLECTIVES_NCCL_NCCL_STATE_H
#define TK_COLLECTIVES_NCCL_NCCL_STATE_H

#include "collectives/device.h"
#include "collectives/nccl/api.h"

enum {
    NCCL_LOOK_MS = 100,   /* how often a waiting rank checks NCCL and the host table for errors */
    NCCL_GRACE_MS = 300,  /* time to finish after a rank has left, since it may have sent all its data */
    NCCL_ABORT_MS = 1000, /* for ncclCommAbort, which does not return while captured graphs exist */
    NCCL_CLOSE_MS = 2000, /* for all ranks to reach close, and for each to finalize */
};

struct nccl_buffer {
    void *memory;
    ncclWindow_t window; /* NULL: registered by `handle` */
    void *handle;        /* of ncclCommRegister; NULL with window NULL: not registered */
};

struct nccl {
    struct device_comm table;
    struct nccl_api api;
    struct collectives *host;
    ncclComm_t comm;
    int64_t timeout_ms;
    struct err failed;
    struct nccl_buffer buffers[DEVICE_BUFFERS_MAX];
    int n_buffers;
    cudaStream_t stream; /* for the table's own work: zeroing and first runs of buffers */
    cudaEvent_t event;   /* for sync */
};

/* wait.c: the first step of every call: -1 with the kept failure when the table is lost. */
int nccl_begin(const struct nccl *n, struct err *err) MUST_CHECK;
/* Keep *err for all later calls, mark this table lost, and abort what is in flight. Always -1. */
int nccl_fail(struct nccl *n, const struct err *err);
/* Convert NCCL's result to an error: 0 for ncclSuccess, else -1 with *err. `what` names the call. */
int nccl_check(const struct nccl *n, ncclResult_t r, const char *what, struct err *err);
/* A call of NCCL has returned r: while that is ncclInProgress, wait until NCCL has finished it. A failure is
 * kept. */
int nccl_settle(struct nccl *n, ncclResult_t r, const char *what, int64_t deadline_ms,
                struct err *err) MUST_CHECK;
/* wait and sync of the table. */
int nccl_wait(struct device_comm *c, void *event, const char *what, int64_t timeout_ms,
              struct err *err) MUST_CHECK;
int nccl_sync(struct device_comm *c, void *stream, const char *what, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* calls.c: set the table's queueing functions. */
void nccl_calls(struct device_comm *c);

/* buffer.c: `buffer` of the table; and free all buffers. */
void *nccl_buffer(struct device_comm *c, size_t bytes, int64_t timeout_ms, struct err *err);
void nccl_buffers_free(struct nccl *n);

#endif
