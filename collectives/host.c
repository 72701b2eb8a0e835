/* host.c - the transport for ranks on one host: broadcast, all_gather and barrier as sequences of phases
 * (host.h), and the table. */
#include "collectives/host.h"
#include "common/clock.h"
#include "common/memory.h"
#include "host/cpus.h"

#include <stdlib.h>
#include <string.h>

int host_begin(const struct host *h, const char *what, int64_t timeout_ms, int64_t *deadline_ms,
               struct err *err)
{
    if (timeout_ms < 0)
        return err_set(err, ERR_INVALID, "%s: negative timeout", what);
    if (h->failed.kind != ERR_NONE) {
        *err = h->failed;
        return -1;
    }
    *deadline_ms = clock_mono_ms() + timeout_ms;
    return 0;
}

static int host_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                          struct err *err)
{
    struct host *h = c->state;
    const struct host_call call = {.op = HOST_BROADCAST, .n = len, .root = (uint32_t)root};
    int64_t deadline_ms;

    if (host_begin(h, "broadcast", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (root < 0 || root >= h->world)
        return err_set(err, ERR_INVALID, "broadcast: root %d: expected 0..%d", root, h->world - 1);
    if (h->world == 1)
        return 0;
    for (size_t at = 0; at < len || at == 0; at += HOST_HALF_BYTES) {
        const uint32_t phase = h->phase;
        const size_t n = host_least(HOST_HALF_BYTES, len - at);
        if (n && h->rank == root)
            memcpy(host_half(h, root, phase), (char *)bytes + at, n);
        if (host_phase(h, at == 0 ? &call : NULL, deadline_ms, err) < 0)
            return -1;
        if (n && h->rank != root)
            memcpy((char *)bytes + at, host_half(h, root, phase), n);
    }
    return 0;
}

static int host_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                           struct err *err)
{
    struct host *h = c->state;
    const struct host_call call = {.op = HOST_ALL_GATHER, .n = len};
    int64_t deadline_ms;

    if (host_begin(h, "all_gather", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (h->world == 1 && len)
        memmove(all, mine, len);
    for (size_t at = 0; h->world > 1 && (at < len || at == 0); at += HOST_HALF_BYTES) {
        const uint32_t phase = h->phase;
        const size_t n = host_least(HOST_HALF_BYTES, len - at);
        if (n)
            memcpy(host_half(h, h->rank, phase), (const char *)mine + at, n);
        if (host_phase(h, at == 0 ? &call : NULL, deadline_ms, err) < 0)
            return -1;
        for (int r = 0; r < h->world && n; r++)
            memcpy((char *)all + (size_t)r * len + at, host_half(h, r, phase), n);
    }
    return 0;
}

static int host_barrier(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    const struct host_call call = {.op = HOST_BARRIER};
    int64_t deadline_ms;

    if (host_begin(c->state, "barrier", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    return host_phase(c->state, &call, deadline_ms, err);
}

static int host_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
                     struct err *err)
{
    int64_t deadline_ms;

    if (host_begin(c->state, "send", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    return host_link_send(c->state, bytes, len, to, deadline_ms, err);
}

static int host_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
                     struct err *err)
{
    int64_t deadline_ms;

    if (host_begin(c->state, "recv", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    return host_link_recv(c->state, bytes, len, from, deadline_ms, err);
}

static float *host_shared(struct collectives *c, size_t n, int64_t timeout_ms, struct err *err)
{
    int64_t deadline_ms;

    if (host_begin(c->state, "shared", timeout_ms, &deadline_ms, err) < 0)
        return NULL;
    return host_segment_piece(c->state, n, deadline_ms, err);
}

static int host_look(struct collectives *c, const char *what, struct err *err)
{
    return host_peers_check(c->state, what, err);
}

void host_free(struct host *h)
{
    host_alarm_stop(h);
    host_segment_close(h);
    for (int r = 0; r < h->world; r++)
        if (h->links[r] >= 0)
            close(h->links[r]);
    free(h->links);
    free(h->src);
    free(h->dst);
    free(h);
}

static void host_close(struct collectives *c)
{
    host_free(c->state);
}

struct host *host_new(const struct collectives_config *cfg)
{
    struct host *h = calloc(1, sizeof(*h));
    const size_t world = (size_t)cfg->local_world;

    if (!h || !(h->links = calloc(world, sizeof(*h->links))) || !(h->src = calloc(world, sizeof(*h->src))) ||
        !(h->dst = calloc(world, sizeof(*h->dst))))
        memory_exhausted();
    h->rank = cfg->local_rank;
    h->world = cfg->local_world;
    h->base = cfg->rank - cfg->local_rank;
    h->segment = -1;
    h->slice_ms = HOST_SLICE_MS;
    h->spins = cfg->local_world <= cpus_usable() ? HOST_SPINS_MAX : 0;
    for (size_t r = 0; r < world; r++)
        h->links[r] = -1;
    return h;
}

int host_open(struct collectives *c, const struct collectives_config *run, int64_t timeout_ms,
              struct err *err)
{
    struct collectives_config one = *run, *cfg = &one;
    const struct host_call call = {.op = HOST_OPEN, .n = (uint64_t)cfg->world};
    const int64_t deadline_ms = clock_mono_ms() + timeout_ms;

    one.local_rank = cfg->rank;
    one.local_world = cfg->world;
    struct host *h = host_new(cfg);
    if (host_meet(h, cfg, deadline_ms, err) < 0 || host_phase(h, &call, deadline_ms, err) < 0) {
        host_free(h);
        return -1;
    }
    *c = (struct collectives){
        .rank = cfg->rank,
        .world = cfg->world,
        .transport = h->world == 1 ? "solo" : "host",
        .state = h,
        .all_reduce = host_all_reduce,
        .all_reduce_f64 = host_all_reduce_f64,
        .broadcast = host_broadcast,
        .all_gather = host_all_gather,
        .barrier = host_barrier,
        .send = host_send,
        .recv = host_recv,
        .look = host_look,
        .shared = host_shared,
        .close = host_close,
    };
    return 0;
}
