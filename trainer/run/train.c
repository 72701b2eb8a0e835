/* train.c - one training step on the CPU or by resident/ on a GPU. */
#include "trainer/run/train.h"

#include "collectives/noted.h"
#include "kernels/device.h"
#include "trainer/run/resident/resident.h"

#include <math.h>
#include <stdlib.h>

/* Allocate the gradients, followed by the loss: in memory of the collectives if ranks sum them, else (stages)
 * in own_grad. */
static float *gradient_memory(struct train *t, struct err *err)
{
    const struct pipeline *p = t->p.pipeline;

    if (p->at.stages == 1)
        return collectives_shared(p->o.comm, t->grad_len + 1, p->o.timeout_ms, err);
    return t->own_grad = host_zeroed((t->grad_len + 1) * sizeof(float), err);
}

int train_make(struct train *t, const struct train_parts *p, struct err *err)
{
    const struct pipeline_options *o = &p->pipeline->o;
    size_t batch = (size_t)o->batch;
    size_t kept =
        (size_t)(p->pipeline->at.stages > 1 ? o->batch : micro_batch_at(o->batch, o->micro_batches, 0).rows);
    const bool takes_loss = pipeline_is_last(p->pipeline) && device_is_host(o->ctx);

    *t = (struct train){.p = *p, .grad_len = p->pipeline->model->len};
    t->grad = gradient_memory(t, err);
    if (!t->grad)
        return -1;
    t->x = calloc(batch * p->feed.len, sizeof(float));
    t->dlogits = takes_loss ? calloc(kept * p->pipeline->forward_len, sizeof(float)) : NULL;
    t->labels = calloc(batch * (size_t)p->feed.labels, sizeof(*t->labels));
    t->values = calloc(batch * (size_t)(p->feed.values ? p->feed.values : 1), sizeof(*t->values));
    t->positions = calloc(batch, sizeof(*t->positions));
    t->order = calloc((size_t)p->sampler.items, sizeof(*t->order));
    if (t->x && (t->dlogits || !takes_loss) && t->labels && t->values && t->positions && t->order) {
        if (device_is_host(o->ctx) || (t->resident = resident_open(p, err)))
            return 0;
        train_release(t);
        return -1;
    }
    train_release(t);
    return err_memory(err, "no memory for a batch of %zu samples", batch);
}

void train_release(struct train *t)
{
    resident_close(t->resident);
    free(t->own_grad);
    free(t->x);
    free(t->dlogits);
    free(t->labels);
    free(t->values);
    free(t->positions);
    free(t->order);
    *t = (struct train){0};
}

void train_skip(struct train *t, int64_t positions)
{
    t->p.sampler.first = positions;
}

void train_epoch(struct train *t, int64_t epoch)
{
    t->p.sampler.first = 0;
    sampler_epoch(&t->p.sampler, epoch, t->order);
    t->own_sum = 0;
    t->mean_sum = 0;
}

int train_sums(struct train *t, double *own, double *mean, struct err *err)
{
    *own = *mean = 0;
    if (t->resident && resident_sums(t->resident, own, mean, err))
        return -1;
    *own += t->own_sum;
    *mean += t->mean_sum;
    return 0;
}

void train_push(struct train *t)
{
    if (t->resident)
        resident_push(t->resident);
}

int train_pull(struct train *t, enum train_reads reads, struct err *err)
{
    return t->resident ? resident_pull(t->resident, reads, err) : 0;
}

/* The gradient of a micro-batch's outputs, on the last stage. Without stages its backward pass runs at once,
 * so all micro-batches use the same memory. */
static float *dlogits_of(const struct train *t, const struct micro_batch *at)
{
    const struct pipeline *pl = t->p.pipeline;

    return t->dlogits && pl->at.stages > 1 ? t->dlogits + (size_t)at->first * pl->forward_len : t->dlogits;
}

/* On the last stage: compute a micro-batch's loss and the gradient of its outputs. */
static int own_loss(struct train *t, const struct micro_batch *at, int rows, const float *out, double *sum,
                    struct err *err)
{
    const struct pipeline *pl = t->p.pipeline;
    const struct feed_targets to = {t->labels, t->values};
    const float share = 1.0f / (float)pl->at.replicas * ((float)at->rows / (float)rows);
    struct loss_result loss;

    if (train_loss(&t->p, at, &to, out, share, dlogits_of(t, at), t->grad, &loss, err))
        return -1;
    *sum += loss.sum / t->p.feed.labels;
    return 0;
}

static int back(struct train *t, const struct micro_batch *at, struct err *err)
{
    return pipeline_backward(t->p.pipeline, at, dlogits_of(t, at), t->grad, err);
}

/* Compute this rank's gradient and loss in t->grad. */
static int own_gradient(struct train *t, int64_t step, double *ret_loss, struct err *err)
{
    const struct train_parts *p = &t->p;
    struct pipeline *pl = p->pipeline;
    const bool alone =
        pl->at.stages == 1; /* then no stage waits for activations, and one micro-batch is in memory at a
                             * time */
    struct feed_targets to = {t->labels, t->values};
    double sum = 0;

    int rows = (int)sampler_batch(&p->sampler, t->order, step, pl->o.batch, t->positions);
    if ((pipeline_is_first(pl) || pipeline_is_last(pl)) &&
        feed_batch(&p->feed, t->positions, rows, t->x, &to, err))
        return -1;
    int n = micro_batches(rows, pl->o.micro_batches);
    for (int i = 0; i < n; i++) {
        struct micro_batch at = micro_batch_at(rows, pl->o.micro_batches, i);
        struct model_step this = {
            .seed = p->seed, .step = p->optim->step, .samples = t->positions + at.first};
        const void *out;
        if (pipeline_forward(pl, &at, t->x + (size_t)at.first * p->feed.len, &this, &out, err) ||
            (out && own_loss(t, &at, rows, out, &sum, err)) || (alone && back(t, &at, err)))
            return -1;
    }
    for (int i = 0; i < n && !alone; i++) {
        struct micro_batch at = micro_batch_at(rows, pl->o.micro_batches, i);
        if (back(t, &at, err))
            return -1;
    }
    *ret_loss = sum / rows;
    t->grad[t->grad_len] = (float)*ret_loss * (1.0f / (float)pl->at.replicas);
    return 0;
}

/* Update the parameters. Clipping uses the norm over all stages' gradients. */
static int update(struct train *t, double lr, struct err *err)
{
    struct pipeline *pl = t->p.pipeline;
    struct optim *o = t->p.optim;
    double squares = optim_squares(o, pl->o.ctx, t->grad);

    if (o->square && pipeline_sum(pl, &squares, err))
        return -1;
    optim_step(o, pl->o.ctx, lr, pl->model->values, t->grad, squares);
    return 0;
}

int train_step(struct train *t, int64_t step, double lr, struct train_result *ret, struct err *err)
{
    const struct train_parts *p = &t->p;
    uint32_t flags = t->raise | (p->stop ? stop_poll(p->stop) : 0);

    if (t->resident && step == 0 && resident_order(t->resident, &p->sampler, t->order, err))
        return -1;
    if (t->resident)
        return resident_step(t->resident, step, lr, flags, t->exact, t->grad, ret, err);
    *ret = (struct train_result){.known = true};
    if (own_gradient(t, step, &ret->own, err))
        return -1;
    if (!isfinite(t->grad[t->grad_len]))
        flags |= COLLECTIVES_NONFINITE;
    if (train_exchange(p, t->grad, &flags, err))
        return -1;
    ret->loss = t->grad[t->grad_len];
    if (!pipeline_is_last(p->pipeline))
        ret->own = (double)ret->loss;
    if (!isfinite(ret->loss))
        flags |= COLLECTIVES_NONFINITE;
    ret->flags = flags;
    t->own_sum += ret->own;
    t->mean_sum += (double)ret->loss;
    return flags & COLLECTIVES_NONFINITE ? 0 : update(t, lr, err);
}
