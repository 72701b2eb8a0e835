/* evaluate.c - a shard in chunks of what the model holds at a time. */
#include "trainer/evaluate.h"

#include "trainer/data/sampler.h"
#include "trainer/model/loss.h"

#include <math.h>
#include <stdlib.h>

enum { LOSS, CORRECT, COUNT, SUMS };

static int add_chunk(const struct evaluate_parts *p, int64_t first, int n, float *x,
                     const struct feed_targets *to, uint32_t *places, double *sums, struct err *err)
{
    struct loss_target target = {p->feed.values ? NULL : to->labels, p->feed.values ? to->values : NULL};
    struct loss_result r;

    for (int i = 0; i < n; i++)
        places[i] = (uint32_t)(first + i);
    if (feed_batch(&p->feed, places, n, x, to, err))
        return -1;
    const struct micro_batch all = {.rows = n};
    const float *logits;
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

int evaluate(const struct evaluate_parts *p, struct evaluate_result *ret, struct err *err)
{
    struct pipeline *pl = p->pipeline;
    struct collectives *stage = pl->replicas;
    int64_t chunk = model_batch_max(pl->model);
    struct shard shard = sampler_shard(p->items, pl->at.replica, pl->at.replicas);
    cleanup_free float *x = calloc((size_t)chunk * p->feed.len, sizeof(float));
    cleanup_free int32_t *labels = calloc((size_t)chunk * (size_t)p->feed.labels, sizeof(*labels));
    cleanup_free float *values =
        calloc((size_t)chunk * (size_t)(p->feed.values ? p->feed.values : 1), sizeof(*values));
    cleanup_free uint32_t *places = calloc((size_t)chunk, sizeof(*places));
    double sums[SUMS] = {0};

    if (!x || !labels || !values || !places)
        return err_set(err, ERR_FATAL, "no memory for an evaluation");
    const struct feed_targets to = {labels, values};
    size_t buffers = model_buffers_bytes(pl->model);
    if (buffers && stage->broadcast(stage, model_buffers(pl->model), buffers, 0, p->timeout_ms, err))
        return -1;
    for (int64_t done = 0; done < shard.count; done += chunk) {
        int64_t n = shard.count - done < chunk ? shard.count - done : chunk;
        if (add_chunk(p, shard.first + done, (int)n, x, &to, places, sums, err))
            return -1;
    }
    if (p->comm->all_reduce_f64(p->comm, sums, SUMS, p->timeout_ms, err))
        return -1;
    ret->loss = sums[LOSS] / sums[COUNT];
    ret->accuracy = p->feed.values ? NAN : sums[CORRECT] / sums[COUNT];
    return 0;
}
