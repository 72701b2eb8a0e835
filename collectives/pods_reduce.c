/* pods_reduce.c - the collectives. Over several pods all are sums: broadcast and all_gather are a bitwise OR
 * of bytes that are 0 on all ranks but one. With one rank per pod the ranks exchange their vectors directly
 * (pods_direct.c). Else the first ranks of each pod, which have links, sum one part each (host_reduce.c) and
 * pass it along the chain of pods (pods_chain.c). */
#include "collectives/pods.h"

#include <string.h>

/* Sum n elements at x over all ranks, and OR the flags of their calls. */
static int reduce(struct pods *p, enum reduce_type type, const struct host_call *call, void *x, size_t n,
                  uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    if (pods_is_one(p) && n * reduce_size(type) <= HOST_SMALL_BYTES)
        return host_reduce_small(p->host, type, call, x, n, flags, deadline_ms, err);
    if (!pods_direct_serves(p))
        return host_reduce(p->host, type, call, x, n, flags, deadline_ms, err);
    return pods_direct(p, type, call, x, n, flags, deadline_ms, err) < 0 ? host_fail(p->host, err) : 0;
}

int pods_agree(struct pods *p, const struct host_call *call, int64_t deadline_ms, struct err *err)
{
    char nothing = 0;
    uint32_t none;

    return reduce(p, REDUCE_OR, call, &nothing, 0, &none, deadline_ms, err);
}

int pods_all_reduce(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                    struct err *err)
{
    struct pods *p = c->state;
    const struct host_piece *piece = NULL;
    struct host_call call = {.op = HOST_ALL_REDUCE, .n = n, .has_flags = flags != NULL};
    uint32_t all = 0;
    int64_t deadline_ms;

    if (host_begin(p->host, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (p->world == 1)
        return 0;
    watch_enter(&p->watch, false);
    call.flags = flags ? *flags : 0;
    if (n > HOST_SMALL_BYTES / sizeof(float))
        call.shared_at = host_segment_find(p->host, x, n, &piece);
    if (piece && !pods_direct_serves(p) ? host_reduce_in_place(p->host, piece, &call, &all, deadline_ms, err)
                                        : reduce(p, REDUCE_F32, &call, x, n, &all, deadline_ms, err))
        return -1;
    if (flags)
        *flags = all;
    return 0;
}

int pods_all_reduce_f64(struct collectives *c, double *x, size_t n, int64_t timeout_ms, struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_ALL_REDUCE_F64, .n = n};
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(p->host, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (p->world == 1)
        return 0;
    watch_enter(&p->watch, false);
    return reduce(p, REDUCE_F64, &call, x, n, &none, deadline_ms, err);
}

int pods_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                   struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_BROADCAST, .n = len, .root = (uint32_t)root};
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(p->host, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (p->world == 1)
        return 0;
    watch_enter(&p->watch, false);
    if (pods_is_one(p))
        return host_broadcast(p->host, &call, bytes, deadline_ms, err);
    if (len && p->rank != root)
        memset(bytes, 0, len);
    return reduce(p, REDUCE_OR, &call, bytes, len, &none, deadline_ms, err);
}

int pods_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                    struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_ALL_GATHER, .n = len};
    const size_t before = (size_t)p->rank * len, bytes = (size_t)p->world * len;
    int64_t deadline_ms;
    uint32_t none;

    if (host_begin(p->host, timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    if (pods_is_one(p))
        return host_all_gather(p->host, &call, mine, all, deadline_ms, err);
    if (len) {
        memmove((char *)all + before, mine, len);
        memset(all, 0, before);
        memset((char *)all + before + len, 0, bytes - before - len);
    }
    return reduce(p, REDUCE_OR, &call, all, bytes, &none, deadline_ms, err);
}
