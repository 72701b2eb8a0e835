/* shards.c - a step in parts: each rank sums, bounds and applies the gradients of its own part of the parameters, keeps the
 * moments of that part alone, and hands its new weights to all (ZeRO, stage 1).
 *
 * Parts are those of trainer/run/shard.h, all of one length: the gradient's buffer and the weights have room behind the last
 * parameter for what it lacks, which is summed and handed around with the rest and means nothing. A part may be empty.
 */
#include "trainer/run/resident/state.h"

#include "collectives/noted.h"

#include <math.h>

/* Where a rank's part of what passes read begins, and of what it is made. */
static size_t part_bytes(const struct resident *r)
{
    return r->p.shard.each * element_bytes(device_element(r->ctx));
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
    void *stream = device_stream(r->ctx);

    if (!r->norm)
        return 0;
    if (resident_arrived(r, stream, err))
        return -1;
    queue_own_squares(r);
    return c->all_reduce(c, &r->norm->squares, 1, DEVICE_F64, stream, err);
}

int resident_shards_gather(struct resident *r, struct err *err)
{
    const struct model_weights w = model_weights(r->model);
    const enum device_type type = device_element(r->ctx) == ELEMENT_BF16 ? DEVICE_BF16 : DEVICE_F32;
    struct device_comm *c = r->p.device_comm;
    void *stream = device_stream(r->ctx);
    const uint8_t *mine = (uint8_t *)w.all + (size_t)c->rank * part_bytes(r);

    if (c->all_gather(c, mine, w.all, r->p.shard.each, type, stream, err) || resident_arrived(r, stream, err))
        return -1;
    if (!w.exact_len)
        return 0;
    model_put_exact(r->model);
    return c->all_reduce(c, w.exact, w.exact_len, DEVICE_F32, stream, err) || resident_arrived(r, stream, err)
               ? -1
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
        collectives_all_reduce_f64(s->comm, &squares, 1, s->timeout_ms, err))
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
    if (shard_sum(s, grad, err) || collectives_all_reduce(s->comm, loss, 1, flags, s->timeout_ms, err))
        return -1;
    device_put(r->ctx, r->grad + o->first, grad + o->first, o->len * sizeof(*grad));
    device_put(r->ctx, r->grad + r->loss_at, loss, sizeof(*loss));
    return exchange_squares(r, err);
}

/* The few that are read in f32, by their sums. */
static int spread_exact(struct resident *r, const struct model_weights *w, float *sums, struct err *err)
{
    const struct shard_parts *s = &r->p.shard;
    const size_t bytes = w->exact_len * sizeof(*sums);

    model_put_exact(r->model);
    if (device_get(r->ctx, sums, w->exact, bytes, err) ||
        collectives_all_reduce(s->comm, sums, w->exact_len, NULL, s->timeout_ms, err))
        return -1;
    device_put(r->ctx, w->exact, sums, bytes);
    return 0;
}

/* The gradients have done their work: their memory carries the weights. */
int resident_shards_spread(struct resident *r, float *grad, struct err *err)
{
    const struct shard_parts *s = &r->p.shard;
    const struct model_weights w = model_weights(r->model);
    const size_t each = part_bytes(r), at = (size_t)s->comm->rank * each;
    uint8_t *mine = (uint8_t *)grad + at;

    if (!isfinite(grad[r->loss_at])) /* weights are what they were, on all ranks */
        return 0;
    if (device_get(r->ctx, mine, (uint8_t *)w.all + at, each, err) ||
        collectives_all_gather(s->comm, mine, each, grad, s->timeout_ms, err))
        return -1;
    device_put(r->ctx, w.all, grad, each * (size_t)s->comm->world);
    return w.exact_len ? spread_exact(r, &w, grad, err) : 0;
}

int resident_shards_pull(struct resident *r, struct err *err)
{
    return model_weights(r->model).part ? shard_spread(&r->p.shard, model_values(r->model), err) : 0;
}
