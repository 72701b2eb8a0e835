/* sampler.c - compute the item at a position of the epoch's permutation for a rank. */
#include "trainer/data/sampler.h"

#include "trainer/rng/torch_rng.h"

int64_t sampler_len(const struct sampler *s)
{
    int64_t left = s->first < s->items ? s->items - s->first : 0;

    return (left + s->world - 1) / s->world;
}

int64_t sampler_steps(const struct sampler *s, int64_t batch)
{
    const int64_t len = sampler_len(s);

    return len / batch + (len % batch != 0);
}

void sampler_epoch(const struct sampler *s, int64_t epoch, uint32_t *order)
{
    if (!s->shuffle) {
        for (int64_t i = 0; i < s->items; i++)
            order[i] = (uint32_t)i;
        return;
    }
    struct torch_rng g;
    torch_rng_seed(&g, s->seed + (uint64_t)epoch);
    torch_rng_randperm(&g, order, (size_t)s->items);
}

uint32_t sampler_at(const struct sampler *s, const uint32_t *order, int64_t position)
{
    /* Padding repeats the order from its begin. */
    return order[(s->first + position * s->world + s->rank) % s->items];
}

int64_t sampler_batch(const struct sampler *s, const uint32_t *order, int64_t step, int64_t batch,
                      uint32_t *out)
{
    const int64_t first = step * batch, left = sampler_len(s) - first;
    const int64_t n = left < batch ? left : batch;

    for (int64_t i = 0; i < n; i++)
        out[i] = sampler_at(s, order, first + i);
    return n;
}

struct shard sampler_shard(int64_t items, int32_t rank, int32_t world)
{
    const int64_t each = items / world, more = items % world; /* the first `more` ranks take one more item */

    return (struct shard){
        .first = rank * each + (rank < more ? rank : more),
        .count = each + (rank < more),
    };
}
