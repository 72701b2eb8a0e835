/* evaluate.c - run the model forward over a shard of the data and sum losses and correct answers. */
#include "trainer/run/evaluate.h"

#include "collectives/noted.h"
#include "trainer/data/sampler.h"
#include "trainer/run/resident/resident.h"

#include <math.h>
#include <stdlib.h>

enum { LOSS, CORRECT, COUNT, SUMS };

/* Buffers for a chunk of samples. */
struct chunk {
    float *x;
    struct feed_targets to;
    uint32_t *positions;
};

static int add_chunk(const struct train *t, const struct feed *f, int64_t first, int n, const struct chunk *c,
                     double *sums, struct err *err)
{
    struct pipeline *pl = t->p.pipeline;
    const struct micro_batch all = {.rows = n};
    const void *logits;
    struct loss_result r;

    if (t->resident && !f->part.tokens)
        return resident_evaluate_chunk(t->resident, first, n, err);
    for (int i = 0; i < n; i++)
        c->positions[i] = (uint32_t)(first + i);
    if (feed_batch(f, c->positions, n, c->x, &c->to, err))
        return -1;
    if (t->resident)
        return resident_evaluate_windows(t->resident, c->x, c->to.labels, n, err);
    if (pipeline_forward(pl, &all, c->x, NULL, &logits, err))
        return -1;
    if (!logits) /* only the last stage computes the loss */
        return 0;
    if (train_loss(&t->p, &all, &c->to, logits, 0, NULL, NULL, &r, err))
        return -1;
    sums[LOSS] += r.sum;
    sums[CORRECT] += r.correct;
    sums[COUNT] += n * f->labels;
    return 0;
}

/* Exchange whether any rank has received a stop signal. */
static int ask(const struct train *t, uint32_t *ret, struct err *err)
{
    const struct pipeline_options *o = &t->p.pipeline->o;
    uint32_t flags = t->p.stop ? stop_poll(t->p.stop) : 0;
    float nothing = 0;

    if (collectives_all_reduce(o->comm, &nothing, 1, &flags, o->timeout_ms, err))
        return -1;
    *ret = flags & (COLLECTIVES_STOP_TERM | COLLECTIVES_STOP_INT);
    return 0;
}

/* Shards may differ by a sample, and so by a chunk: all ranks exchange as often as the one with the longest
 * shard. */
static int add_shard(const struct train *t, const struct feed *f, int64_t items, const struct chunk *c,
                     double *sums, uint32_t *ret_stop, struct err *err)
{
    const struct pipeline *pl = t->p.pipeline;
    const int64_t most = pl->model->batch_max;
    struct shard shard = sampler_shard(items, pl->at.replica, pl->at.replicas);
    int64_t longest = (items + pl->at.replicas - 1) / pl->at.replicas;

    for (int64_t done = 0; done < longest; done += most) {
        int64_t n = shard.count - done < most ? shard.count - done : most;
        if (ask(t, ret_stop, err))
            return -1;
        if (*ret_stop)
            return 0;
        if (n > 0 && add_chunk(t, f, shard.first + done, (int)n, c, sums, err))
            return -1;
    }
    return 0;
}

/* Broadcast rank 0's buffers, as DDP does. */
static int share_buffers(const struct pipeline *pl, struct err *err)
{
    struct model *m = pl->model;
    size_t bytes = m->buffers_bytes;

    if (!bytes || pl->at.stages > 1)
        return 0;
    if (model_pull(m, err) || collectives_broadcast(pl->o.comm, m->buffers, bytes, 0, pl->o.timeout_ms, err))
        return -1;
    model_push_buffers(m);
    return 0;
}

/* Evaluate a shard on a device. */
static int device_sums(const struct train *t, const struct feed *f, int64_t items, double *sums,
                       struct err *err)
{
    const struct pipeline *pl = t->p.pipeline;
    struct shard mine = sampler_shard(items, pl->at.replica, pl->at.replicas);
    struct queued_loss r;

    if (resident_evaluate_end(t->resident, &r, err))
        return -1;
    if (!pipeline_is_last(pl))
        return 0;
    sums[LOSS] = r.sum;
    sums[CORRECT] = r.correct;
    sums[COUNT] = (double)mine.count * f->labels;
    return 0;
}

int evaluate(const struct train *t, const struct feed *f, int64_t items, struct evaluate_result *ret,
             struct err *err)
{
    struct pipeline *pl = t->p.pipeline;
    const size_t most = (size_t)pl->model->batch_max;
    cleanup_free float *x = calloc(most * f->len, sizeof(float));
    cleanup_free int32_t *labels = calloc(most * (size_t)f->labels, sizeof(*labels));
    cleanup_free float *values = calloc(most * (size_t)(f->values ? f->values : 1), sizeof(*values));
    cleanup_free uint32_t *positions = calloc(most, sizeof(*positions));
    double sums[SUMS] = {0};

    if (!x || !labels || !values || !positions)
        return err_memory(err, "no memory for an evaluation");
    const struct chunk c = {x, {labels, values}, positions};
    /* resident_evaluate_begin waits for the device under a deadline. */
    if ((t->resident && resident_evaluate_begin(t->resident, f, items, err)) || share_buffers(pl, err))
        return -1;
    *ret = (struct evaluate_result){0};
    if (add_shard(t, f, items, &c, sums, &ret->stop, err))
        return -1;
    if (ret->stop)
        return 0;
    if ((t->resident && device_sums(t, f, items, sums, err)) ||
        collectives_all_reduce_f64(pl->o.comm, sums, SUMS, pl->o.timeout_ms, err))
        return -1;
    ret->loss = sums[LOSS] / sums[COUNT];
    ret->accuracy = f->values ? NAN : sums[CORRECT] / sums[COUNT];
    return 0;
}
