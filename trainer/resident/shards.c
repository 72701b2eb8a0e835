/* shards.c - a step in parts: each rank sums, bounds and applies the gradients of its own part of the parameters, keeps the
 * moments of that part alone, and hands its new weights to all (ZeRO, stage 1).
 *
 * Parts are those of trainer/shard.h, all of one length: the gradient's buffer and the weights have room behind the last
 * parameter for what it lacks, which is summed and handed around with the rest and means nothing. A part may be empty.
 */
#include "trainer/resident/state.h"

#include <math.h>

static size_t bytes_of(const struct queued_params *w)
{
    return w->n * sizeof(*w->p);
}

struct queued_params resident_own(const struct resident *r)
{
    const struct optim *o = r->p.optim;
    struct queued_params w = model_trained(r->model);

    w.p += o->first;
    if (w.copy)
        w.copy = (uint8_t *)w.copy + o->first * element_bytes(device_element(r->ctx));
    w.first = (uint32_t)o->first;
    w.n = o->len;
    return w;
}

int resident_shards_sum(struct resident *r, struct err *err)
{
    const struct shard_parts *s = &r->p.shard;
    struct device_comm *c = r->p.device_comm;
    void *stream = device_stream(r->ctx);
    float *mine = r->grad + s->each * (size_t)c->rank;

    return c->reduce_scatter(c, r->grad, mine, s->each, DEVICE_F32, stream, err) ||
                   c->all_reduce(c, r->grad + r->loss_at, 1 + QUEUED_FLAGS, DEVICE_F32, stream, err)
               ? -1
               : 0;
}

static void queue_own_squares(struct resident *r)
{
    const struct optim *o = r->p.optim;

    if (o->len)
        queue_squares(r->ctx, r->norm, r->grad + o->first, o->len);
    else
        device_zero(r->ctx, r->norm, sizeof(*r->norm));
}

int resident_shards_squares(struct resident *r, struct err *err)
{
    struct device_comm *c = r->p.device_comm;

    if (!r->norm)
        return 0;
    queue_own_squares(r);
    return c->all_reduce(c, &r->norm->squares, 1, DEVICE_F64, device_stream(r->ctx), err);
}

int resident_shards_gather(struct resident *r, struct err *err)
{
    const size_t each = r->p.shard.each;
    const struct queued_params all = model_trained(r->model);
    struct device_comm *c = r->p.device_comm;
    void *stream = device_stream(r->ctx);
    const size_t element = element_bytes(device_element(r->ctx));
    const size_t first = each * (size_t)c->rank;

    if (c->all_gather(c, all.p + first, all.p, each, DEVICE_F32, stream, err))
        return -1;
    return all.copy ? c->all_gather(c, (uint8_t *)all.copy + first * element, all.copy, each, DEVICE_BF16,
                                    stream, err)
                    : 0;
}

/* The sum of all parts' squares. */
static int exchange_squares(struct resident *r, struct err *err)
{
    const struct shard_parts *s = &r->p.shard;
    double squares;

    if (!r->norm)
        return 0;
    queue_own_squares(r);
    if (device_get(r->ctx, &squares, &r->norm->squares, sizeof(squares), err) ||
        s->comm->all_reduce_f64(s->comm, &squares, 1, s->timeout_ms, err))
        return -1;
    device_put(r->ctx, &r->norm->squares, &squares, sizeof(squares));
    return 0;
}

int resident_shards_exchange(struct resident *r, float *grad, uint32_t *flags, struct err *err)
{
    const struct shard_parts *s = &r->p.shard;
    const struct optim *o = r->p.optim;
    float *loss = grad + r->loss_at;

    if (device_get(r->ctx, grad, r->grad, (r->loss_at + 1) * sizeof(*grad), err))
        return -1;
    if (!isfinite(*loss))
        *flags |= COLLECTIVES_NONFINITE;
    if (shard_sum(s, grad, err) || s->comm->all_reduce(s->comm, loss, 1, flags, s->timeout_ms, err))
        return -1;
    device_put(r->ctx, r->grad + o->first, grad + o->first, o->len * sizeof(*grad));
    device_put(r->ctx, r->grad + r->loss_at, loss, sizeof(*loss));
    return exchange_squares(r, err);
}

/* The gradients have done their work: their memory carries the weights. */
int resident_shards_spread(struct resident *r, float *grad, struct err *err)
{
    const struct shard_parts *s = &r->p.shard;
    const struct queued_params own = resident_own(r), all = model_trained(r->model);
    struct collectives *c = s->comm;

    if (!isfinite(grad[r->loss_at])) /* weights are what they were, on all ranks */
        return 0;
    if (device_get(r->ctx, grad + own.first, own.p, bytes_of(&own), err) ||
        c->all_gather(c, grad + s->each * (size_t)c->rank, s->each * sizeof(*grad), grad, s->timeout_ms, err))
        return -1;
    device_put(r->ctx, all.p, grad, bytes_of(&all));
    if (all.copy)
        queue_round(r->ctx, &all, r->p.optim->step + 1);
    return 0;
}
