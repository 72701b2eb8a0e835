/* shard.c - cut the parameters into one part per rank (ZeRO): all of one length, the last ones shorter or empty. */
#include "trainer/run/shard.h"

#include "collectives/noted.h"

#include <string.h>

enum { LINE = 16 }; /* floats: collectives_part cuts at whole lines */

static size_t padded(const struct shard_parts *s)
{
    return (s->len + LINE - 1) / LINE * LINE;
}

struct shard_parts shard_of(struct collectives *comm, bool off, size_t len, int64_t timeout_ms)
{
    struct shard_parts s = {.comm = comm, .timeout_ms = timeout_ms, .len = len, .end = len};
    size_t begin;

    if (off || comm->world == 1)
        return s;
    collectives_part(padded(&s), 0, comm->world, &begin, &s.each);
    collectives_part(padded(&s), comm->rank, comm->world, &s.begin, &s.end);
    if (s.begin > len)
        s.begin = len;
    if (s.end > len)
        s.end = len;
    return s;
}

int shard_sum(const struct shard_parts *s, float *grad, struct err *err)
{
    return collectives_reduce_scatter(s->comm, grad, padded(s), s->timeout_ms, err);
}

int shard_step(const struct shard_parts *s, struct optim *o, struct kctx *ctx, double lr, float *values,
               float *grad, struct err *err)
{
    double squares = optim_squares(o, ctx, grad);

    if (collectives_all_reduce_f64(s->comm, &squares, 1, s->timeout_ms, err))
        return -1;
    optim_step_within(o, ctx, lr, values, grad, squares);
    /* The gradients have done their work: their memory carries the weights. */
    memcpy(grad + s->begin, values + s->begin, (s->end - s->begin) * sizeof(*grad));
    if (collectives_all_gather(s->comm, grad + s->each * (size_t)s->comm->rank, s->each * sizeof(*grad), grad,
                               s->timeout_ms, err))
        return -1;
    memcpy(values, grad, s->len * sizeof(*values));
    return 0;
}

/* Rank r's part. */
static size_t part_of(const struct shard_parts *s, int r, size_t *begin)
{
    *begin = s->each * (size_t)r < s->len ? s->each * (size_t)r : s->len;
    return s->len - *begin < s->each ? s->len - *begin : s->each;
}

int shard_gather(const struct shard_parts *s, const float *part, float *whole, struct err *err)
{
    struct collectives *c = s->comm;
    size_t begin, n = s->end - s->begin;

    if (c->rank)
        return n ? collectives_send(c, part, n * sizeof(*part), 0, s->timeout_ms, err) : 0;
    memcpy(whole, part, n * sizeof(*part));
    for (int r = 1; r < c->world; r++)
        if ((n = part_of(s, r, &begin)) &&
            collectives_recv(c, whole + begin, n * sizeof(*part), r, s->timeout_ms, err))
            return -1;
    return 0;
}

int shard_scatter(const struct shard_parts *s, float *part, const float *whole, struct err *err)
{
    struct collectives *c = s->comm;
    size_t begin, n = s->end - s->begin;

    if (c->rank)
        return n ? collectives_recv(c, part, n * sizeof(*part), 0, s->timeout_ms, err) : 0;
    memcpy(part, whole, n * sizeof(*part));
    for (int r = 1; r < c->world; r++)
        if ((n = part_of(s, r, &begin)) &&
            collectives_send(c, whole + begin, n * sizeof(*part), r, s->timeout_ms, err))
            return -1;
    return 0;
}

int shard_spread(const struct shard_parts *s, float *values, struct err *err)
{
    struct collectives *c = s->comm;
    size_t begin, n;

    for (int r = 0; r < c->world; r++)
        if ((n = part_of(s, r, &begin)) &&
            collectives_broadcast(c, values + begin, n * sizeof(*values), r, s->timeout_ms, err))
            return -1;
    return 0;
}
