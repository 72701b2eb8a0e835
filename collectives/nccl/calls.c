/* calls.c - queue all_reduce, send and recv on a stream. */
#include "collectives/nccl/nccl_state.h"
#include "common/clock.h"
#include "host/rank_state.h"

static ncclDataType_t type_of(enum device_type type)
{
    static const ncclDataType_t types[] = {
        [DEVICE_F32] = ncclFloat32, [DEVICE_BF16] = ncclBfloat16, [DEVICE_F64] = ncclFloat64};

    return types[type];
}

/* Wait until NCCL has queued the call that returned r, and count it in the rank's slot. */
static int taken(struct nccl *n, ncclResult_t r, enum rank_call call, struct err *err)
{
    rank_state_begin(n->host->slot, call);
    const int rc =
        r == ncclSuccess ? 0 : nccl_settle(n, r, rank_call_name(call), clock_mono_ms() + n->timeout_ms, err);
    rank_state_end(n->host->slot);
    return rc;
}

static int all_reduce(struct device_comm *c, void *x, size_t count, enum device_type type, void *stream,
                      struct err *err)
{
    struct nccl *n = c->state;

    if (nccl_begin(n, err))
        return -1;
    return taken(n, n->api.all_reduce(x, x, count, type_of(type), ncclSum, n->comm, stream),
                 RANK_CALL_ALL_REDUCE, err);
}

static int send_to(struct device_comm *c, const void *bytes, size_t len, int to, void *stream,
                   struct err *err)
{
    struct nccl *n = c->state;

    if (nccl_begin(n, err))
        return -1;
    return taken(n, n->api.send(bytes, len, ncclUint8, to, n->comm, stream), RANK_CALL_SEND, err);
}

static int recv_from(struct device_comm *c, void *bytes, size_t len, int from, void *stream, struct err *err)
{
    struct nccl *n = c->state;

    if (nccl_begin(n, err))
        return -1;
    return taken(n, n->api.recv(bytes, len, ncclUint8, from, n->comm, stream), RANK_CALL_RECV, err);
}

void nccl_calls(struct device_comm *c)
{
    c->all_reduce = all_reduce;
    c->send = send_to;
    c->recv = recv_from;
}
