/* evaluate.c - run the model forward over a shard of the data and sum losses and hits. */
#include "trainer/run/evaluate.h"

#include "collectives/noted.h"
#include "trainer/data/sampler.h"
#include "trainer/model/loss.h"
#include "trainer/run/resident/resident.h"

#include <math.h>
#include <stdlib.h>

enum { LOSS, CORRECT, COUNT, SUMS };

static int add_chunk(const struct evaluate_parts *p, int64_t first, int n, float *x,
                     const struct feed_targets *to, uint32_t *places, double *sums, struct err *err)
{
    struct loss_target target = {p->feed.values ? NULL : to->labels, p->feed.values ? to->values : NULL};
    struct loss_result r;

    if (p->resident && !p->feed.part.tokens)
        return resident_evaluate_chunk(p->resident, first, n, err);
    for (int i = 0; i < n; i++)
        places[i] = (uint32_t)(first + i);
    if (feed_batch(&p->feed, places, n, x, to, err))
        return -1;
    if (p->resident)
        return resident_evaluate_windows(p->resident, x, to->labels, n, err);
    const struct micro_batch all = {.rows = n};
    const void *logits;
    if (pipeline_forward(p->pipeline, &all, x, NULL, &logits, err))
        return -1;
    if (!logits) /* the last stage counts */
        return 0;
    const int rows = n * p->feed.labels;
    const struct head_target head = {.labels = to->labels};
    if (model_has_head(p->pipeline->model)
            ? pipeline_head_loss(p->pipeline, &all, &head, NULL, NULL, &r, err)
            : loss_of(&p->loss, p->ctx, &r, NULL, logits, &target, rows, p->pipeline->output.channels, err))
        return -1;
    sums[LOSS] += r.sum;
    sums[CORRECT] += r.correct;
    sums[COUNT] += rows;
    return 0;
}

int evaluate_stopped(struct collectives *comm, struct stop *stop, int64_t timeout_ms, uint32_t *ret,
                     struct err *err)
{
    uint32_t flags = stop ? stop_poll(stop) : 0;
    float nothing = 0;

    if (collectives_all_reduce(comm, &nothing, 1, &flags, timeout_ms, err))
        return -1;
    *ret = flags & (COLLECTIVES_STOP_TERM | COLLECTIVES_STOP_INT);
    return 0;
}

/* Shards differ by a sample, and so perhaps by a chunk: all ranks ask as often as the one with the longest. */
static int add_shard(const struct evaluate_parts *p, int64_t chunk, float *x, const struct feed_targets *to,
                     uint32_t *places, double *sums, uint32_t *ret_stop, struct err *err)
{
    const struct pipeline *pl = p->pipeline;
    struct shard shard = sampler_shard(p->items, pl->at.replica, pl->at.replicas);
    int64_t longest = (p->items + pl->at.replicas - 1) / pl->at.replicas;

    for (int64_t done = 0; done < longest; done += chunk) {
        int64_t n = shard.count - done < chunk ? shard.count - done : chunk;
        if (evaluate_stopped(p->comm, p->stop, p->timeout_ms, ret_stop, err))
            return -1;
        if (*ret_stop)
            return 0;
        if (n > 0 && add_chunk(p, shard.first + done, (int)n, x, to, places, sums, err))
            return -1;
    }
    return 0;
}

/* Those of rank 0, as in DDP. */
static int share_buffers(const struct evaluate_parts *p, struct err *err)
{
    struct model *m = p->pipeline->model;
    size_t bytes = model_buffers_bytes(m);

    if (!bytes || p->pipeline->at.stages > 1)
        return 0;
    if (model_pull(m, err) || collectives_broadcast(p->comm, model_buffers(m), bytes, 0, p->timeout_ms, err))
        return -1;
    model_push_buffers(m);
    return 0;
}

/* Of a shard that a device has evaluated. */
static int device_sums(const struct evaluate_parts *p, double *sums, struct err *err)
{
    struct shard mine = sampler_shard(p->items, p->pipeline->at.replica, p->pipeline->at.replicas);
    struct queued_loss r;

    if (resident_evaluate_end(p->resident, &r, err))
        return -1;
    if (!pipeline_is_last(p->pipeline))
        return 0;
    sums[LOSS] = r.sum;
    sums[CORRECT] = r.correct;
    sums[COUNT] = (double)mine.count * p->feed.labels;
    return 0;
}

int evaluate(const struct evaluate_parts *p, struct evaluate_result *ret, struct err *err)
{
    struct pipeline *pl = p->pipeline;
    int64_t chunk = model_batch_max(pl->model);
    cleanup_free float *x = calloc((size_t)chunk * p->feed.len, sizeof(float));
    cleanup_free int32_t *labels = calloc((size_t)chunk * (size_t)p->feed.labels, sizeof(*labels));
    cleanup_free float *values =
        calloc((size_t)chunk * (size_t)(p->feed.values ? p->feed.values : 1), sizeof(*values));
    cleanup_free uint32_t *places = calloc((size_t)chunk, sizeof(*places));
    double sums[SUMS] = {0};

    if (!x || !labels || !values || !places)
        return err_memory(err, "no memory for an evaluation");
    const struct feed_targets to = {labels, values};
    /* A device is waited for there, under a deadline. */
    if ((p->resident && resident_evaluate_begin(p->resident, &p->feed, p->items, err)) ||
        share_buffers(p, err))
        return -1;
    *ret = (struct evaluate_result){0};
    if (add_shard(p, chunk, x, &to, places, sums, &ret->stop, err))
        return -1;
    if (ret->stop)
        return 0;
    if (p->resident && device_sums(p, sums, err))
        return -1;
    if (collectives_all_reduce_f64(p->comm, sums, SUMS, p->timeout_ms, err))
        return -1;
    ret->loss = sums[LOSS] / sums[COUNT];
    ret->accuracy = p->feed.values ? NAN : sums[CORRECT] / sums[COUNT];
    return 0;
}
