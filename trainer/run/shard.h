/* shard.h - split the optimiser's state over ranks (ZeRO stage 1): each rank sums its part of the gradients, updates its
 * part of the weights, and sends them to all.
 *
 * Order:     all but shard_of are collective calls.
 * Errors:    those of the collectives.
 * Numerics:  sums in rank order and the same updates, element by element, as without parts. Where the gradients' norm is
 *            bounded, its f64 sum is grouped by parts: the weights' bits differ only if that moves its rounding to f32.
 */
#ifndef TK_TRAINER_RUN_SHARD_H
#define TK_TRAINER_RUN_SHARD_H

#include "collectives/collectives.h"
#include "kernels/kctx.h"
#include "trainer/model/optim.h"

struct shard_parts {
    struct collectives *comm;
    int64_t timeout_ms;
    size_t len;        /* of all parameters */
    size_t each;       /* length of a part; the last ones may be shorter; 0: there are no parts */
    size_t begin, end; /* this rank's */
};

/* off: no parts (each 0), as in a world of 1. */
struct shard_parts shard_of(struct collectives *comm, bool off, size_t len, int64_t timeout_ms);

/* Floats that a buffer of gradients needs. */
static inline size_t shard_len(const struct shard_parts *s)
{
    return s->each ? s->each * (size_t)s->comm->world : s->len;
}

/* Sum the gradients, update, and distribute the new weights to all ranks; `grad` (shard_len) is overwritten. */
int shard_step(const struct shard_parts *s, struct optim *o, struct kctx *ctx, double lr, float *values,
               float *grad, struct err *err) MUST_CHECK;

/* The sums alone, where the step must not be taken before all ranks agree on it: this rank's part of grad. */
int shard_sum(const struct shard_parts *s, float *grad, struct err *err) MUST_CHECK;

/* Move numbers laid out like the parameters between the parts of all ranks (part) and rank 0 (whole; NULL elsewhere). */
int shard_gather(const struct shard_parts *s, const float *part, float *whole, struct err *err) MUST_CHECK;
int shard_scatter(const struct shard_parts *s, float *part, const float *whole, struct err *err) MUST_CHECK;

/* All-gather: each rank has its own part of `len` numbers; afterwards all ranks have all. */
int shard_spread(const struct shard_parts *s, float *values, struct err *err) MUST_CHECK;

#endif
