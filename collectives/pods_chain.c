/* pods_chain.c - the chain algorithm of sums over pods: partial sums pass from pod to pod, the result comes back.
 *
 *     pod 0            pod 1                 pod 2
 *     sum ----------> + its ranks --------> + its ranks = result
 *     result <------- result <------------- |
 *
 * Both directions stream: the start of the result can be back at pod 0 while the end of the vector is still going
 * up.
 */
#include "collectives/pods.h"

#include <string.h>

struct chain {
    struct pods *p;
    const struct host_vectors *v;
    struct flow flows[4];
    int n;
    struct flow *up_in, *up_out, *down_in, *down_out; /* NULL: no pod there */
    size_t have;                                      /* bytes summed so far */
    size_t copied; /* bytes of the result copied so far, from dst[0] to the other dst */
    uint32_t flags;
};

static struct flow *add_flow(struct chain *c, int pod, bool out, char *buf, const struct wire_head *mine)
{
    struct flow *f = &c->flows[c->n++];

    *f = (struct flow){.fd = c->p->links[pod],
                       .peer = c->p->layout.first[pod] + c->p->host->rank,
                       .out = out,
                       .buf = buf,
                       .len = c->v->bytes};
    if (out)
        f->head = *mine;
    return f;
}

static void sum(struct chain *c, const char *partial, size_t to)
{
    const struct host_vectors *v = c->v;
    const int ranks = c->p->host->world;
    void *dst = (char *)v->dst[0] + c->have;
    int n = 0;

    if (partial)
        c->p->src[n++] = partial;
    for (int r = 0; r < ranks; r++)
        c->p->src[n++] = (const char *)v->src[r] + c->have;
    reduce_vectors(v->type, &dst, 1, c->p->src, n, (to - c->have) / reduce_size(v->type));
    c->have = to;
}

/* Add the whole elements of partial sums that have arrived in the area, and remove them from it. */
static void sum_what_came(struct chain *c)
{
    struct flow *in = c->up_in;
    const size_t size = reduce_size(c->v->type), came = in->at - c->have, whole = came / size * size;

    if (whole) {
        sum(c, in->buf, c->have + whole);
        memmove(in->buf, in->buf + whole, came - whole);
        in->skip = c->have;
    }
    in->limit = c->have + PODS_AREA_BYTES;
}

static void sum_ahead(struct chain *c)
{
    const size_t to = host_least(c->v->bytes, c->up_out->at + PODS_BLOCK_BYTES);

    if (to > c->have)
        sum(c, NULL, to);
}

static void chain_step(void *ctx)
{
    struct chain *c = ctx;
    const bool up_known = !c->up_in || flow_has_head(c->up_in);

    if (c->up_in)
        sum_what_came(c);
    else
        sum_ahead(c);
    if (c->up_out) {
        c->up_out->limit = c->have;
        if (up_known && !c->up_out->ready) {
            c->up_out->head.call.flags = c->flags | (c->up_in ? c->up_in->head.call.flags : 0);
            c->up_out->ready = true;
        }
        c->down_in->limit = c->up_out->at; /* the next pods cannot have summed more */
    }
    const size_t result = c->down_in ? c->down_in->at : c->have;
    if (c->down_out) {
        c->down_out->limit = result;
        if (!c->down_out->ready && (c->down_in ? flow_has_head(c->down_in) : up_known)) {
            c->down_out->head.call.flags =
                c->down_in ? c->down_in->head.call.flags : c->flags | c->up_in->head.call.flags;
            c->down_out->ready = true;
        }
    }
    for (int d = 1; d < c->v->n_dst && result > c->copied; d++)
        memcpy((char *)c->v->dst[d] + c->copied, (char *)c->v->dst[0] + c->copied, result - c->copied);
    c->copied = result;
}

int pods_chain(void *arg, const struct host_call *call, const struct host_vectors *v, uint32_t *flags,
               int64_t deadline_ms, struct err *err)
{
    struct pods *p = arg;
    const struct wire_head mine = pods_head(p, call);
    struct chain c = {.p = p, .v = v, .flags = *flags};
    char *dst = v->dst[0];

    if (p->pod > 0) {
        c.up_in = add_flow(&c, p->pod - 1, false, p->area, &mine);
        c.down_out = add_flow(&c, p->pod - 1, true, dst, &mine);
    }
    if (p->pod < p->layout.n_pods - 1) {
        c.up_out = add_flow(&c, p->pod + 1, true, dst, &mine);
        c.down_in = add_flow(&c, p->pod + 1, false, dst, &mine);
    }
    if (pods_flows(p, c.flows, c.n, &mine, chain_step, &c, deadline_ms, err) < 0)
        return -1;
    *flags = c.down_in ? c.down_in->head.call.flags : c.flags | c.up_in->head.call.flags;
    return 0;
}
