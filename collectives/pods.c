/* pods.c - the transport: open, close, barrier, shared pieces, and the table (pods.h). */
#include "collectives/pods.h"
#include "common/clock.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

static int pods_barrier(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_BARRIER};
    int64_t deadline_ms;

    if (host_begin(p->host, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    return pods_agree(p, &call, deadline_ms, err);
}

/* Each pod has its own memory: agree on the size, allocate the piece, and return when all ranks have it. */
static float *pods_shared(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_SHARED, .n = n};
    int64_t deadline_ms;

    if (host_begin(p->host, timeout_ms, &deadline_ms, err) < 0)
        return NULL;
    watch_enter(&p->watch, false);
    if (pods_agree(p, &call, deadline_ms, err) < 0)
        return NULL;
    float *x = host_segment_piece(p->host, n, deadline_ms, err);
    return x && pods_agree(p, &call, deadline_ms, err) == 0 ? x : NULL;
}

static int look(struct collectives *c, const char *what, struct err *err)
{
    struct pods *p = c->state;

    return host_peers_check(p->host, what, err) || pods_look(p, what, err) ? -1 : 0;
}

static void pods_free(struct pods *p)
{
    watch_close(&p->watch, p->host && p->host->failed.kind == ERR_NONE && p->watch.seq > 0);
    for (int i = 0; i < 3 * p->world; i++)
        if (p->links[i] >= 0)
            close(p->links[i]);
    for (int i = 0; i < p->n_pending; i++)
        close(p->pending[i].fd);
    service_close(&p->door);
    if (p->host)
        host_free(p->host);
    pod_layout_release(&p->layout);
    free(p->links);
    free(p->area);
    free(p->src);
    free(p);
}

static void pods_close(struct collectives *c)
{
    pods_free(c->state);
}

static struct pods *pods_new(const struct collectives_config *cfg)
{
    struct pods *p = memory_must(malloc(sizeof(*p)));
    const size_t world = (size_t)cfg->world;

    *p = (struct pods){.rank = cfg->rank,
                       .world = cfg->world,
                       .pass = pass_of(cfg),
                       .door = {.listener = -1, .stop = -1},
                       .watch = {.fd = -1, .left_after = UINT64_MAX},
                       .area = memory_must(malloc(PODS_AREA_BYTES)),
                       .src = memory_must(calloc(world + 1, sizeof(*p->src))),
                       .links = memory_must(calloc(3 * world, sizeof(*p->links)))};
    for (size_t i = 0; i < 3 * world; i++)
        p->links[i] = -1;
    p->from = p->links + world;
    p->to = p->from + world;
    return p;
}

int pods_open(struct collectives *c, const struct collectives_config *cfg, bool several, int64_t timeout_ms,
              struct err *err)
{
    const int64_t deadline_ms = clock_mono_ms() + timeout_ms;
    struct pods *p = pods_new(cfg);

    if (pods_meet(p, cfg, several, deadline_ms, err) < 0) {
        pods_free(p);
        return -1;
    }
    *c = (struct collectives){
        .rank = cfg->rank,
        .world = cfg->world,
        .transport = p->unshared       ? "pods without shared memory"
                     : !pods_is_one(p) ? "pods"
                     : p->world == 1   ? "solo"
                                       : "host",
        .state = p,
        .all_reduce = pods_all_reduce,
        .all_reduce_f64 = pods_all_reduce_f64,
        .broadcast = pods_broadcast,
        .all_gather = pods_all_gather,
        .barrier = pods_barrier,
        .send = pods_send,
        .recv = pods_recv,
        .look = look,
        .shared = pods_shared,
        .close = pods_close,
    };
    return 0;
}
