/* host.c - create and free a struct host; broadcast and all_gather between the ranks of one host as sequences of
 * phases (host.h). */
#include "collectives/host.h"
#include "common/clock.h"
#include "common/memory.h"
#include "host/cpus.h"

#include <stdlib.h>
#include <string.h>

int host_begin(const struct host *h, int64_t timeout_ms, int64_t *deadline_ms, struct err *err)
{
    if (h->failed.kind != ERR_NONE) {
        *err = h->failed;
        return -1;
    }
    *deadline_ms = clock_mono_ms() + timeout_ms;
    return 0;
}

int host_broadcast(struct host *h, const struct host_call *call, void *bytes, int64_t deadline_ms,
                   struct err *err)
{
    const int root = (int)call->root;

    for (size_t at = 0; at < call->n || at == 0; at += HOST_HALF_BYTES) {
        const uint32_t phase = h->phase;
        const size_t n = host_least(HOST_HALF_BYTES, call->n - at);
        if (n && h->rank == root)
            memcpy(host_half(h, root, phase), (char *)bytes + at, n);
        if (host_phase(h, at == 0 ? call : NULL, deadline_ms, err) < 0)
            return -1;
        if (n && h->rank != root)
            memcpy((char *)bytes + at, host_half(h, root, phase), n);
    }
    return 0;
}

int host_all_gather(struct host *h, const struct host_call *call, const void *mine, void *all,
                    int64_t deadline_ms, struct err *err)
{
    for (size_t at = 0; at < call->n || at == 0; at += HOST_HALF_BYTES) {
        const uint32_t phase = h->phase;
        const size_t n = host_least(HOST_HALF_BYTES, call->n - at);
        if (n)
            memcpy(host_half(h, h->rank, phase), (const char *)mine + at, n);
        if (host_phase(h, at == 0 ? call : NULL, deadline_ms, err) < 0)
            return -1;
        for (int r = 0; r < h->world && n; r++)
            memcpy((char *)all + (size_t)r * call->n + at, host_half(h, r, phase), n);
    }
    return 0;
}

struct host *host_new(int rank, int world, int base)
{
    struct host *h = memory_must(malloc(sizeof(*h)));
    const size_t n = (size_t)world;

    *h = (struct host){.rank = rank,
                       .world = world,
                       .base = base,
                       .segment = -1,
                       .slice_ms = HOST_SLICE_MS,
                       .spins = world <= cpus_usable() ? HOST_SPINS_MAX : 0,
                       .links = memory_must(calloc(n, sizeof(*h->links))),
                       .src = memory_must(calloc(n, sizeof(*h->src))),
                       .dst = memory_must(calloc(n, sizeof(*h->dst)))};
    for (size_t r = 0; r < n; r++)
        h->links[r] = -1;
    return h;
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
