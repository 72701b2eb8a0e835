/* state.h - what the files of this folder share.
 *
 * Ownership: struct nccl owns the communicator, its buffers, a stream and an event. Once lost, the abort threads have the
 *            communicators, and nothing of the device is given back.
 */
#ifndef TK_COLLECTIVES_NCCL_STATE_H
#define TK_COLLECTIVES_NCCL_STATE_H

#include "collectives/device.h"
#include "collectives/nccl/api.h"

enum {
    NCCL_LOOK_MS = 100, /* how often a waiting rank asks NCCL and the host table for bad news */
    NCCL_GRACE_MS =
        300, /* a rank that has left may have finished what we wait for: so long may it still arrive */
    NCCL_ABORT_MS = 1000, /* for ncclCommAbort; it never returns while recorded graphs are alive */
    NCCL_CLOSE_MS = 2000, /* for all ranks to come and leave */
};

struct nccl_buffer {
    void *memory;
    ncclWindow_t window; /* or */
    void *handle;        /* of ncclCommRegister; both NULL: not registered */
};

struct nccl {
    struct device_comm table;
    struct nccl *beside; /* the table that stands and falls with this one (among); NULL: none */
    struct nccl_api api;
    struct collectives *host;
    ncclComm_t comm;
    int64_t timeout_ms;
    struct err failed;
    struct nccl_buffer buffers[DEVICE_BUFFERS_MAX];
    int n_buffers;
    cudaStream_t stream; /* for what is not the caller's: zeroing, first runs */
    cudaEvent_t event;   /* for sync */
};

/* wait.c: the failure that has been, or 0. */
int nccl_begin(const struct nccl *n, struct err *err) MUST_CHECK;
/* Keep *err, abort all that is in flight; the table is lost. Always -1. */
int nccl_fail(struct nccl *n, const struct err *err);
/* What a result of NCCL means: 0 for success, else *err. `what` names the call. */
int nccl_check(const struct nccl *n, ncclResult_t r, const char *what, struct err *err);
/* NCCL has been given something: wait until it has taken it. A failure is kept. */
int nccl_settle(struct nccl *n, ncclResult_t r, const char *what, int64_t deadline_ms,
                struct err *err) MUST_CHECK;
/* device.h's wait and sync. */
int nccl_wait(struct device_comm *c, void *event, const char *what, int64_t timeout_ms,
              struct err *err) MUST_CHECK;
int nccl_sync(struct device_comm *c, void *stream, const char *what, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* open.c: device.h's. */
struct device_comm *nccl_among(struct device_comm *c, struct collectives *host, int64_t timeout_ms,
                               struct err *err);

/* calls.c: fills the table's queueing entries. */
void nccl_calls(struct device_comm *c);

/* buffer.c */
void *nccl_buffer(struct device_comm *c, size_t bytes, int64_t timeout_ms, struct err *err);
void nccl_buffers_free(struct nccl *n);

#endif
