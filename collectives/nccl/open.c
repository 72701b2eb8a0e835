/* open.c - create and close an NCCL communicator over the ranks of a job. */
#include "collectives/nccl/nccl.h"
#include "collectives/noted.h"
#include "common/memory.h"

#include "collectives/nccl/nccl_state.h"
#include "common/clock.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NCCL_SHARES_GPUS = 23000 }; /* ncclGetVersion's number of 2.30.0 */

/* What rank 0 broadcasts: the id, or the error that prevented it. */
struct id_or_error {
    ncclUniqueId id;
    struct err err;
};

static int share_id(struct nccl *n, ncclUniqueId *ret, struct err *err)
{
    struct collectives *host = n->host;
    struct id_or_error sent = {0};

    if (host->rank == 0)
        nccl_check(n, n->api.get_unique_id(&sent.id), "making NCCL's id", &sent.err);
    if (collectives_broadcast(host, &sent, sizeof(sent), 0, n->timeout_ms, err))
        return -1;
    *ret = sent.id;
    if (!sent.err.kind)
        return 0;
    *err = sent.err;
    return host->rank == 0 ? -1 : err_wrap(err, "rank 0");
}

/* With NCCL_MULTI_RANK_GPU_ENABLE=1 ranks may share a GPU. NCCL knows that variable from 2.30 on; older ones refuse two
 * ranks on one GPU of one host, but not when NCCL_HOSTID, which they read at the first communicator, tells them apart. */
static void let_ranks_share(const struct nccl *n)
{
    const char *share = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    char host[40];

    if (n->api.version >= NCCL_SHARES_GPUS || !share || strcmp(share, "1") != 0)
        return;
    snprintf(host, sizeof(host), "torchkeeper-rank-%d", n->host->rank);
    (void)setenv("NCCL_HOSTID", host, 0);
}

static int meet(struct nccl *n, struct err *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    if (share_id(n, &id, err))
        return -1;
    config.blocking = 0;
    let_ranks_share(n);
    const int64_t deadline_ms = clock_mono_ms() + n->timeout_ms;
    ncclResult_t r = n->api.init_rank_config(&n->comm, n->host->world, id, n->host->rank, &config);
    return nccl_settle(n, r, "meeting over NCCL", deadline_ms, err);
}

static int make_own(struct nccl *n, struct err *err)
{
    cudaError_t e = cudaStreamCreateWithFlags(&n->stream, cudaStreamNonBlocking);

    if (!e)
        e = cudaEventCreateWithFlags(&n->event, cudaEventDisableTiming);
    return e ? err_set(err, ERR_TRANSIENT, "the GPU: %s", cudaGetErrorString(e)) : 0;
}

/* Leave after a barrier, because a peer's kernel may still read our buffers. When the barrier fails, abort
 * instead. */
static void leave(struct nccl *n)
{
    struct err why = {0};

    if (collectives_barrier(n->host, NCCL_CLOSE_MS, &why)) {
        nccl_fail(n, &why);
        return;
    }
    nccl_buffers_free(n);
    if (nccl_settle(n, n->api.finalize(n->comm), "leaving NCCL", clock_mono_ms() + NCCL_CLOSE_MS, &why))
        return;
    (void)n->api.destroy(n->comm);
}

static void nccl_close(struct device_comm *c)
{
    struct nccl *n = c->state;

    if (n->comm && !c->lost)
        leave(n);
    if (!c->lost) {
        if (n->event)
            (void)cudaEventDestroy(n->event);
        if (n->stream)
            (void)cudaStreamDestroy(n->stream);
    }
    free(n);
}

static struct nccl *make(struct collectives *host, int64_t timeout_ms)
{
    struct nccl *n = memory_must(calloc(1, sizeof(*n)));

    *n = (struct nccl){.host = host, .timeout_ms = timeout_ms};
    n->table = (struct device_comm){.rank = host->rank,
                                    .world = host->world,
                                    .state = n,
                                    .buffer = nccl_buffer,
                                    .wait = nccl_wait,
                                    .sync = nccl_sync,
                                    .close = nccl_close};
    nccl_calls(&n->table);
    return n;
}

struct device_comm *nccl_open(struct collectives *host, const char *library, int64_t timeout_ms,
                              struct err *err)
{
    struct nccl *n = make(host, timeout_ms);

    if (nccl_api_load(&n->api, library, err)) {
        free(n);
        return NULL;
    }
    snprintf(n->table.transport, sizeof(n->table.transport), "nccl %d.%d.%d", n->api.version / 10000,
             n->api.version / 100 % 100, n->api.version % 100);
    if (make_own(n, err) || meet(n, err)) {
        nccl_close(&n->table);
        return NULL;
    }
    return &n->table;
}
