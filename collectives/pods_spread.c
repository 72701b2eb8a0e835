/* pods_spread.c - broadcast and all_gather over several pods: chunks stream from pod to pod, through the staging
 * halves of each. */
#include "collectives/pods.h"

#include <string.h>

struct relay {
    struct flow flows[3]; /* the incoming one if there is one, then the outgoing ones */
    bool has_in;
    int n;
    uint32_t from; /* this rank */
};

static void relay_step(void *ctx)
{
    struct relay *r = ctx;

    for (int i = r->has_in ? 1 : 0; i < r->n && r->has_in; i++) {
        r->flows[i].limit = r->flows[0].at;
        if (!r->flows[i].ready && flow_has_head(&r->flows[0])) {
            r->flows[i].head = r->flows[0].head;
            r->flows[i].head.from = r->from;
            r->flows[i].ready = true;
        }
    }
}

static void add_flow(struct pods *p, struct relay *r, int pod, bool out, char *buf, size_t len,
                     const struct wire_head *mine)
{
    if (pod < 0 || pod >= p->layout.n_pods)
        return;
    struct flow *f = &r->flows[r->n++];
    *f = (struct flow){.fd = p->links[pod], .peer = p->layout.first[pod] + p->lane, .out = out, .buf = buf};
    f->len = f->limit = len;
    if (out) {
        f->head = *mine;
        f->ready = !r->has_in;
    }
}

/* Forward our lane's part of a chunk, away from the root's pod. */
static int relay_part(struct pods *p, const struct host_call *call, char *buf, size_t len,
                      int64_t deadline_ms, struct err *err)
{
    const struct wire_head mine = pods_head(p, call);
    const int root = layout_pod_of(&p->layout, (int)call->root);
    struct relay r = {.from = (uint32_t)p->rank, .has_in = p->pod != root};

    if (p->pod != root)
        add_flow(p, &r, p->pod < root ? p->pod + 1 : p->pod - 1, false, buf, len, &mine);
    if (p->pod <= root)
        add_flow(p, &r, p->pod - 1, true, buf, len, &mine);
    if (p->pod >= root)
        add_flow(p, &r, p->pod + 1, true, buf, len, &mine);
    return r.n ? pods_flows(p, r.flows, r.n, &mine, relay_step, &r, deadline_ms, err) : 0;
}

static int broadcast_chunk(struct pods *p, const struct host_call *call, bool first, char *bytes, size_t n,
                           int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const uint32_t phase = h->phase;
    const int root = (int)call->root, lanes = p->layout.lanes;
    const bool at_root = layout_pod_of(&p->layout, root) == p->pod;
    const char *source = at_root ? host_half(h, root - h->base, phase) : NULL;
    size_t begin, end;
    struct err why = {0};

    if (n && p->rank == root)
        memcpy(host_half(h, h->rank, phase), bytes, n);
    if (host_phase(h, first ? call : NULL, deadline_ms, err) < 0)
        return -1;
    collectives_part(n, p->lane < 0 ? 0 : p->lane, lanes, &begin, &end);
    char *half = host_half(h, h->rank, phase + 1);
    char *buf = at_root ? host_half(h, root - h->base, phase) + begin : half + begin;
    if ((p->lane == 0 || (p->lane > 0 && end > begin)) &&
        relay_part(p, call, buf, end - begin, deadline_ms, &why) < 0) {
        *err = why;
        return host_fail(h, &why);
    }
    if (n && at_root && p->rank != root)
        memcpy(bytes, source, n);
    if (host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    for (int lane = 0; lane < lanes && !at_root; lane++) {
        collectives_part(n, lane, lanes, &begin, &end);
        if (end > begin)
            memcpy(bytes + begin, host_half(h, lane, phase + 1) + begin, end - begin);
    }
    return 0;
}

int pods_broadcast(struct collectives *c, void *bytes, size_t len, int root, int64_t timeout_ms,
                   struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_BROADCAST, .n = len, .root = (uint32_t)root};
    int64_t deadline_ms;

    if (host_begin(p->host, "broadcast", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    if (root < 0 || root >= p->world)
        return err_set(err, ERR_INVALID, "broadcast: root %d: expected 0..%d", root, p->world - 1);
    watch_enter(&p->watch, false);
    for (size_t at = 0; at < len || at == 0; at += HOST_HALF_BYTES)
        if (broadcast_chunk(p, &call, at == 0, (char *)bytes + at, host_least(HOST_HALF_BYTES, len - at),
                            deadline_ms, err) < 0)
            return -1;
    watch_report(&p->watch); /* others may go on waiting for a rank that this one did not need */
    return 0;
}

/* Upwards each pod forwards the bytes of all pods from the first to itself, downwards those from itself to the
 * last. */
struct gather {
    struct flow flows[4];
    int n;
    struct flow *up_in, *up_out, *down_in, *down_out;
    size_t below, ours; /* bytes of the pods before ours; bytes of ours */
};

static struct flow *add_gather(struct pods *p, struct gather *g, int pod, bool out, char *buf, size_t len,
                               const struct wire_head *mine)
{
    struct flow *f = &g->flows[g->n++];

    *f = (struct flow){
        .fd = p->links[pod], .peer = p->layout.first[pod], .out = out, .ready = out, .buf = buf};
    f->len = f->limit = len;
    if (out)
        f->head = *mine;
    return f;
}

static void gather_step(void *ctx)
{
    struct gather *g = ctx;

    if (g->up_out && g->up_in)
        g->up_out->limit = g->up_in->at < g->below ? g->up_in->at : g->below + g->ours;
    if (g->down_out && g->down_in)
        g->down_out->limit = g->ours + g->down_in->at;
}

/* area holds `n` bytes per rank of the run, in order; our pod's are filled in. */
static int gather(struct pods *p, const struct host_call *call, char *area, size_t n, int64_t deadline_ms,
                  struct err *err)
{
    const struct wire_head mine = pods_head(p, call);
    const struct layout *l = &p->layout;
    struct gather g = {.below = (size_t)l->first[p->pod] * n, .ours = (size_t)p->host->world * n};
    const size_t all = (size_t)p->world * n, after = all - g.below - g.ours;

    if (p->pod > 0) {
        g.up_in = add_gather(p, &g, p->pod - 1, false, area, g.below, &mine);
        g.down_out = add_gather(p, &g, p->pod - 1, true, area + g.below, g.ours + after, &mine);
    }
    if (p->pod < l->n_pods - 1) {
        g.up_out = add_gather(p, &g, p->pod + 1, true, area, g.below + g.ours, &mine);
        g.down_in = add_gather(p, &g, p->pod + 1, false, area + g.below + g.ours, after, &mine);
    }
    return pods_flows(p, g.flows, g.n, &mine, gather_step, &g, deadline_ms, err);
}

static int gather_chunk(struct pods *p, const struct host_call *call, size_t at, size_t n, const char *mine,
                        char *all, int64_t deadline_ms, struct err *err)
{
    struct host *h = p->host;
    const uint32_t phase = h->phase;
    struct err why = {0};

    if (n)
        memcpy(host_half(h, h->rank, phase), mine + at, n);
    if (host_phase(h, at == 0 ? call : NULL, deadline_ms, err) < 0)
        return -1;
    if (h->rank == 0) {
        char *area = host_half(h, 0, phase + 1);
        for (int r = 0; r < h->world; r++)
            memcpy(area + (size_t)(h->base + r) * n, host_half(h, r, phase), n);
        if (gather(p, call, area, n, deadline_ms, &why) < 0) {
            *err = why;
            return host_fail(h, &why);
        }
    }
    if (host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    for (int r = 0; r < p->world && n; r++)
        memcpy(all + (size_t)r * call->n + at, host_half(h, 0, phase + 1) + (size_t)r * n, n);
    return 0;
}

int pods_all_gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                    struct err *err)
{
    struct pods *p = c->state;
    const struct host_call call = {.op = HOST_ALL_GATHER, .n = len};
    const size_t most = HOST_HALF_BYTES / (size_t)p->world;
    int64_t deadline_ms;

    if (host_begin(p->host, "all_gather", timeout_ms, &deadline_ms, err) < 0)
        return -1;
    watch_enter(&p->watch, false);
    for (size_t at = 0; at < len || at == 0; at += most)
        if (gather_chunk(p, &call, at, host_least(most, len - at), mine, all, deadline_ms, err) < 0)
            return -1;
    return 0;
}
