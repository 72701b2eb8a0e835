/* pods_direct.c - the direct algorithm of sums when every pod is one rank: each rank owns a part of the vector,
 * receives that part from all others, adds in rank order and sends the result to all.
 *
 *     rank 0   its part from 1, 2 ---> 0 + 1 + 2 ---> to 1, 2      all at the same time, and streaming: sums are
 *     rank 1   its part from 0, 2 ---> 0 + 1 + 2 ---> to 0, 2      sent to a peer as soon as that peer's part has
 *     rank 2   its part from 0, 1 ---> 0 + 1 + 2 ---> to 0, 1      been sent to it
 *
 * The vector is read and written in place. Each rank sends and receives 2 (n - 1) / n times the vector, as in a
 * ring all-reduce, but in 2 steps instead of 2 (n - 1), and in a fixed order of addition. Of a short vector each rank
 * sends all to all and sums all: 1 step.
 */
#include "collectives/pods.h"

#include <string.h>

enum {
    SUM_BYTES = 32 * 1024,   /* the least to sum at a time, so that few bytes are moved by memmove */
    SHORT_BYTES = 16 * 1024, /* the longest vector that is sent whole; fits into a peer's share of the area */
};

/* The flows between this rank and one other. Results follow the parts on the same link without a header. */
struct side {
    struct flow *part_out, *part_in;     /* its part of our vector; our part of its vector */
    struct flow *result_out, *result_in; /* our part of the sum; its part of the sum; NULL: a short vector */
    char *area;
};

struct direct {
    struct pods *p;
    enum reduce_type type;
    bool whole; /* a short vector: everyone's part is all of it */
    char *ours; /* our part */
    size_t bytes, have, area_bytes;
    struct side sides[PODS_DIRECT_MAX]; /* [world], ours is empty */
    struct flow flows[PODS_DIRECT_FLOWS_MAX];
    int n;
};

bool pods_direct_serves(const struct pods *p)
{
    return !pods_is_one(p) && p->layout.n_pods == p->world && p->world <= PODS_DIRECT_MAX;
}

static struct flow *add_flow(struct direct *d, int rank, bool out, char *buf, size_t len)
{
    struct flow *f = &d->flows[d->n++];

    *f = (struct flow){.fd = d->p->links[rank], .peer = rank, .out = out, .buf = buf, .len = len};
    return f;
}

static struct flow *add_result(struct direct *d, int rank, bool out, char *buf, size_t len)
{
    struct flow *f = add_flow(d, rank, out, buf, len);

    f->ready = true;
    f->head_at = sizeof(f->head);
    return f;
}

/* How far all ranks have sent our part. The sum of a short vector overwrites what is sent, so nothing of it counts before
 * it has been sent. */
static size_t came_from_all(const struct direct *d)
{
    size_t to = d->bytes;

    for (int r = 0; r < d->p->world; r++) {
        const struct side *s = &d->sides[r];
        if (!s->part_in)
            continue;
        to = host_least(to, s->part_in->at);
        if (d->whole && s->part_out->at < s->part_out->len)
            return d->have;
    }
    return to;
}

static void sum_what_came(struct direct *d)
{
    const size_t size = reduce_size(d->type), to = came_from_all(d), n = (to - d->have) / size;
    void *dst = d->ours + d->have;

    if (n == 0 || (to < d->bytes && n * size < SUM_BYTES))
        return;
    for (int r = 0; r < d->p->world; r++)
        d->p->src[r] = d->sides[r].part_in ? d->sides[r].area : d->ours + d->have;
    reduce_vectors(d->type, &dst, 1, d->p->src, d->p->world, n);
    d->have += n * size;
    for (int r = 0; r < d->p->world; r++) {
        struct flow *in = d->sides[r].part_in;
        if (!in)
            continue;
        memmove(d->sides[r].area, d->sides[r].area + n * size, in->at - d->have);
        in->skip = d->have;
        in->limit = d->have + d->area_bytes;
    }
}

static void direct_step(void *ctx)
{
    struct direct *d = ctx;

    sum_what_came(d);
    for (int r = 0; r < d->p->world; r++) {
        const struct side *s = &d->sides[r];
        if (s->result_out && s->part_out->at == s->part_out->len && flow_has_head(s->part_out))
            s->result_out->limit = d->have;
        if (s->result_in && s->part_in->at == s->part_in->len && flow_has_head(s->part_in))
            s->result_in->limit = s->part_out->at; /* the peer cannot have summed more */
    }
}

static void part_of(const struct direct *d, size_t n, int rank, size_t *begin, size_t *end)
{
    *begin = 0;
    *end = n;
    if (!d->whole)
        collectives_part(n, rank, d->p->world, begin, end);
}

/* Add the flows between us and `rank`. Parts come before results, because a link's bytes go to its flows in
 * order. */
static void add_side(struct direct *d, char *x, size_t n, int rank, const struct wire_head *mine)
{
    const size_t size = reduce_size(d->type);
    struct side *s = &d->sides[rank];
    size_t begin, end;

    part_of(d, n, rank, &begin, &end);
    s->area = d->p->area + (size_t)(rank < d->p->rank ? rank : rank - 1) * d->area_bytes;
    s->part_out = add_flow(d, rank, true, x + begin * size, (end - begin) * size);
    s->part_out->head = *mine;
    s->part_out->ready = true;
    s->part_out->limit = s->part_out->len;
    s->part_in = add_flow(d, rank, false, s->area, d->bytes);
    s->part_in->limit = d->area_bytes;
    if (d->whole)
        return;
    s->result_out = add_result(d, rank, true, d->ours, d->bytes);
    s->result_in = add_result(d, rank, false, x + begin * size, (end - begin) * size);
}

int pods_direct(struct pods *p, enum reduce_type type, const struct host_call *call, char *x, size_t n,
                uint32_t *flags, int64_t deadline_ms, struct err *err)
{
    const struct wire_head mine = pods_head(p, call);
    struct direct d = {.p = p, .type = type};
    const size_t size = reduce_size(type);
    size_t begin, end;

    d.whole = n * size <= SHORT_BYTES;
    part_of(&d, n, p->rank, &begin, &end);
    d.ours = x + begin * size;
    d.bytes = (end - begin) * size;
    d.area_bytes = PODS_AREA_BYTES / (size_t)(p->world - 1) / 64 * 64;
    for (int step = 1; step < p->world; step++)
        add_side(&d, x, n, (p->rank + step) % p->world, &mine);
    if (pods_flows(p, d.flows, d.n, &mine, direct_step, &d, deadline_ms, err) < 0)
        return -1;
    *flags = call->flags;
    for (int r = 0; r < p->world; r++)
        *flags |= d.sides[r].part_in ? d.sides[r].part_in->head.call.flags : 0;
    return 0;
}
