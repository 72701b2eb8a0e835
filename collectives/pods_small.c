/* pods_small.c - the small algorithm of sums over pods: the leaders exchange the vectors of all ranks, and each
 * sums them; and pods_agree, the same without data. */
#include "collectives/pods.h"
#include "collectives/reduce.h"

#include <string.h>

bool pods_is_small(const struct pods *p, size_t bytes)
{
    return p->layout.n_pods <= PODS_LEADERS_MAX && bytes <= PODS_SMALL_BYTES &&
           bytes * (size_t)p->world <= PODS_AREA_BYTES;
}

/* Exchange vectors between all leaders. The area holds one vector per rank of the run, in order; our pod's are
 * filled in. */
static int exchange(struct pods *p, const struct host_call *call, size_t bytes, uint32_t *flags,
                    int64_t deadline_ms, struct err *err)
{
    const struct layout *l = &p->layout;
    struct wire_head mine = pods_head(p, call);
    struct flow flows[2 * PODS_LEADERS_MAX];
    int n = 0;

    mine.flags = *flags;
    for (int pod = 0; pod < l->n_pods; pod++) {
        const size_t first = (size_t)l->first[pod], ranks = (size_t)l->first[pod + 1] - first;
        const size_t our_first = (size_t)l->first[p->pod], ours = (size_t)p->host->world;
        if (pod == p->pod)
            continue;
        flows[n] = (struct flow){.fd = p->links[pod], .peer = l->first[pod], .out = true, .ready = true};
        flows[n].head = mine;
        flows[n].buf = p->area + our_first * bytes;
        flows[n].limit = flows[n].len = ours * bytes;
        n++;
        flows[n] = (struct flow){.fd = p->links[pod], .peer = l->first[pod], .buf = p->area + first * bytes};
        flows[n].limit = flows[n].len = ranks * bytes;
        n++;
    }
    if (pods_flows(p, flows, n, &mine, NULL, NULL, deadline_ms, err) < 0)
        return -1;
    for (int i = 1; i < n; i += 2)
        *flags |= flows[i].head.flags;
    return 0;
}

/* The leader collects its pod's vectors, exchanges and sums them, and stores the sum in its half of the next
 * phase. */
static int lead_small(struct pods *p, enum reduce_type type, const struct host_call *call, uint32_t phase,
                      int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const size_t bytes = call->n * reduce_size(type);
    void *dst = host_half(h, h->rank, phase + 1);
    uint32_t flags = pods_local_flags(h, phase);

    for (int r = 0; r < h->world; r++)
        memcpy(p->area + ((size_t)h->base + (size_t)r) * bytes, host_half(h, r, phase), bytes);
    if (exchange(p, call, bytes, &flags, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < p->world; r++)
        p->src[r] = p->area + (size_t)r * bytes;
    reduce_vectors(type, &dst, 1, p->src, p->world, call->n);
    pods_give_flags(h, phase, flags);
    return 0;
}

int pods_reduce_small(struct pods *p, int type, const struct host_call *call, void *x, uint32_t *flags,
                      int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const uint32_t phase = h->phase;
    const size_t bytes = call->n * reduce_size((enum reduce_type)type);
    struct err why = {0};

    if (bytes)
        memcpy(host_half(h, h->rank, phase), x, bytes);
    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    if (h->rank == 0 && lead_small(p, (enum reduce_type)type, call, phase, deadline_ms, &why) < 0)
        return pods_fail(p, &why, err);
    if (host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    if (bytes)
        memcpy(x, host_half(h, 0, phase + 1), bytes);
    *flags = pods_taken_flags(h, phase + 1);
    return 0;
}

int pods_agree(struct pods *p, const struct host_call *call, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const uint32_t phase = h->phase;
    struct err why = {0};

    if (host_phase(h, call, deadline_ms, err) < 0)
        return -1;
    if (h->rank == 0) {
        uint32_t flags = 0;
        void *dst = host_half(h, 0, phase + 1);
        const struct chain_part part = {.src = h->src, .dst = &dst, .n_dst = 1};
        for (int r = 0; r < h->world; r++)
            h->src[r] = host_half(h, r, phase);
        int rc = pods_is_small(p, 0) ? exchange(p, call, 0, &flags, deadline_ms, &why)
                                     : pods_chain(p, call, &part, &flags, deadline_ms, &why);
        if (rc < 0)
            return pods_fail(p, &why, err);
    }
    return host_phase(h, NULL, deadline_ms, err);
}
