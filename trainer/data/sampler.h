/* sampler.h - the item for each position of an epoch on each rank, by DistributedSampler's rule. train.c
 * calls it. Pure.
 *
 * The epoch's order is torch.randperm under seed + epoch (or 0..n-1). It is padded to a multiple of the world
 * size by starting again from its front, and rank r takes every world-th entry from r on. A single process is
 * rank 0 of 1: it sees DistributedSampler's order, not that of DataLoader's own RandomSampler.
 *
 * Units:  items and positions count samples, never batches, unless named steps. */
#ifndef TK_TRAINER_DATA_SAMPLER_H
#define TK_TRAINER_DATA_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct sampler {
    int64_t items; /* 1..INT32_MAX */
    int64_t
        first; /* positions of the order that earlier attempts have used; all functions continue from there */
    int32_t rank, world;
    uint64_t seed;
    bool shuffle;
};

/* Positions per rank and epoch: ceil((items - first) / world), 0 when none are left. */
int64_t sampler_len(const struct sampler *s);

/* Steps per epoch at `batch` samples per rank; the last batch may be smaller. */
int64_t sampler_steps(const struct sampler *s, int64_t batch);

/* Write the epoch's order of all `s->items` items; the same on every rank. */
void sampler_epoch(const struct sampler *s, int64_t epoch, uint32_t *order);

/* The item at `position` (0..sampler_len-1) of this rank in that order. */
uint32_t sampler_at(const struct sampler *s, const uint32_t *order, int64_t position);

/* This rank's batch `step`: writes up to `batch` items, returns how many. */
int64_t sampler_batch(const struct sampler *s, const uint32_t *order, int64_t step, int64_t batch,
                      uint32_t *out);

/* Evaluation: a contiguous part of 0..items-1 per rank, no padding; the parts differ by at most one item. */
struct shard {
    int64_t first;
    int64_t count;
};
struct shard sampler_shard(int64_t items, int32_t rank, int32_t world);

#endif
