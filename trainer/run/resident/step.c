/* step.c - queue one training step on a GPU, with the exchange between ranks. */
#include "trainer/run/resident/resident_state.h"

#include <math.h>
#include <stdlib.h>

void resident_push(struct resident *r)
{
    const struct optim *o = r->p.optim;

    model_push(r->model);
    if (r->m)
        device_put(r->ctx, r->m, o->m, o->len * sizeof(float));
    if (r->v)
        device_put(r->ctx, r->v, o->v, o->len * sizeof(float));
}

int resident_pull(struct resident *r, enum train_reads reads, struct err *err)
{
    const bool weights = reads != TRAIN_READS_NOTHING;
    const bool moments = reads == TRAIN_READS_ALL;
    const struct optim *o = r->p.optim;

    return resident_settle(r, err) || resident_check_steps(r, err) ||
                   (weights && model_pull(r->model, err)) ||
                   (moments && r->m && device_get(r->ctx, o->m, r->m, o->len * sizeof(float), err)) ||
                   (moments && r->v && device_get(r->ctx, o->v, r->v, o->len * sizeof(float), err))
               ? -1
               : 0;
}

int resident_order(struct resident *r, const struct sampler *s, const uint32_t *order, struct err *err)
{
    struct step_state now;

    r->sampler = *s;
    r->epoch = order;
    cleanup_free uint32_t *mine = calloc((size_t)r->order_max, sizeof(*mine));

    r->order_len = sampler_len(s);
    if (!mine)
        return err_memory(err, "no memory for the order of an epoch");
    for (int64_t i = 0; i < r->order_len; i++)
        mine[i] = sampler_at(s, order, i);
    if (resident_settle(r, err))
        return -1;
    device_put(r->ctx, r->order, mine, (size_t)r->order_len * sizeof(*mine));
    if (device_get(r->ctx, &now, r->state, sizeof(now), err))
        return -1;
    now.own_sum = 0;
    now.mean_sum = 0;
    device_put(r->ctx, r->state, &now, sizeof(now));
    return 0;
}

int resident_sums(struct resident *r, double *own, double *mean, struct err *err)
{
    struct step_state now;

    if (resident_settle(r, err) || device_get(r->ctx, &now, r->state, sizeof(now), err))
        return -1;
    *own = pipeline_is_last(r->p.pipeline) ? now.own_sum : now.mean_sum;
    *mean = now.mean_sum;
    return 0;
}

/* Add the loss of some of a batch's samples to *loss. With a gradient: also compute that of `share` times
 * their mean, which goes to loss_sum. */
int resident_queue_loss(struct resident *r, const struct micro_batch *at, const void *out, float share,
                        struct queued_loss *loss, float *gradient, struct err *err)
{
    const struct loss_spec *spec = &r->p.loss;
    const int32_t *labels = r->batch.labels + (size_t)at->first * (size_t)r->outputs;
    float *mean = gradient ? r->loss_sum : NULL;
    void *dout = gradient ? resident_dlogits(r, at) : NULL;
    const int all = at->rows * r->outputs;
    struct loss_result ignored;

    if (model_has_head(r->model)) {
        const struct head_target target = {
            .labels = labels, .share = share / (float)all, .queued = loss, .mean = mean};
        return pipeline_head_loss(r->p.pipeline, at, &target, dout, gradient, &ignored, err);
    }
    if (r->labels)
        r->ctx->ops->queue_cross_entropy(r->ctx, loss, mean, dout, out, labels, all, r->classes,
                                         spec->label_smoothing, share, true);
    else
        r->ctx->ops->queue_mse(r->ctx, loss, mean, dout, out,
                               r->batch.values + (size_t)at->first * (size_t)r->classes, at->rows, r->classes,
                               share, true);
    return 0;
}

static struct queued_begin begin_of(const struct resident *r)
{
    return (struct queued_begin){r->state, r->orders, RESIDENT_RING, r->loss, r->flags};
}

/* Whether a step begins by gathering its samples: not for windows or several micro-batches, where queue_begin
 * comes first. */
static bool begins_with_samples(const struct resident *r)
{
    return !r->sequence && r->micro == 1;
}

static void queue_begin(struct resident *r)
{
    const struct queued_begin begin = begin_of(r);

    if (!begins_with_samples(r))
        r->ctx->ops->queue_step_begin(r->ctx, &begin);
    if (r->micro > 1)
        device_zero(r->ctx, r->grad, r->len * sizeof(float));
}

void resident_queue_samples(struct resident *r, int rows)
{
    const struct queued_begin begin = begin_of(r);
    const bool begins = begins_with_samples(r);

    if (r->sequence)
        r->ctx->ops->queue_windows(r->ctx, &r->windows, &r->batch, r->state, rows);
    else
        r->ctx->ops->queue_gather(r->ctx, &r->train.gather, &r->batch, r->train_items, r->order,
                                  begins ? NULL : &r->state->now.first, begins ? &begin : NULL, rows);
}

/* Queue both passes of one micro-batch. Each loss of a step is the mean so far: the last one is the
 * step's. */
static int queue_micro(struct resident *r, const struct recorded *g, struct err *err)
{
    const int rows = g->rows;
    const struct train_parts *p = &r->p;
    const float share = 1.0f / (float)p->pipeline->at.replicas * ((float)rows / (float)g->total);
    const struct model_step this = {
        .seed = p->seed, .step_at = &r->state->now.step, .samples = r->batch.samples};
    const struct micro_batch alone = {.rows = rows};
    float *grad = r->micro > 1 ? r->more : r->grad;

    resident_queue_samples(r, rows);
    const void *out = model_forward(r->model, r->ctx, r->batch.x, rows, &this);
    if (resident_queue_loss(r, &alone, out, share, r->loss, grad, err))
        return -1;
    if (g->last && resident_has_buckets(r)) {
        if (resident_queue_buckets(r, grad, err))
            return -1;
    } else {
        model_backward(r->model, r->ctx, r->dlogits, grad, NULL);
        if (r->micro > 1)
            r->ctx->ops->queue_accumulate(r->ctx, r->grad, r->more, r->len);
    }
    if (r->micro > 1)
        r->ctx->ops->queue_step_advance(r->ctx, r->state, rows);
    return 0;
}

/* Queue the sum of gradients over ranks, and their norm, if the device computes them. */
static int queue_sums(struct resident *r, struct err *err)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;

    if (r->stages)
        return r->separate_loss ? resident_stages_sum(r, err) : 0;
    if (c && !resident_has_buckets(r) &&
        c->all_reduce(c, r->grad, r->len + 1 + QUEUED_FLAGS, DEVICE_F32, r->ctx->ops->stream(r->ctx), err))
        return -1;
    if (r->norm)
        r->ctx->ops->queue_squares(r->ctx, r->norm, r->grad, r->len);
    return 0;
}

static int queue_finish(struct resident *r, int total, struct err *err)
{
    const struct optim *o = r->p.optim;
    const float *loss = r->loss_sum;
    const float *scale = r->norm ? &r->norm->scale : NULL;
    const struct queued_params w = model_trained(r->model);

    if (queue_sums(r, err) || resident_arrived(r, r->ctx->ops->stream(r->ctx), err))
        return -1;
    if (r->norm)
        r->ctx->ops->queue_bound(r->ctx, r->norm, o->spec.clip);
    if (w.n)
        r->ctx->ops->queue_update(r->ctx, o->spec.ops->rule, r->state, loss, scale, r->span, o->spans, &w,
                                  r->m, r->v, r->grad);
    r->ctx->ops->queue_step_end(r->ctx, r->state, r->loss, total * r->outputs, loss, r->norm, r->flags,
                                r->records, RESIDENT_RING);
    return 0;
}

/* Half 0: up to the gradient, or the whole step if it is one graph. Half 1: the rest. With several
 * micro-batches: one of them. */
int resident_queue_half(struct resident *r, int half, const struct recorded *g, struct err *err)
{
    if (r->micro > 1)
        return queue_micro(r, g, err);
    if (half == 0) {
        queue_begin(r);
        if (r->stages ? resident_stages_queue(r, g->total, err) : queue_micro(r, g, err))
            return -1;
    }
    return half == 1 || r->whole ? queue_finish(r, g->total, err) : 0;
}

/* Sum the gradients over ranks on the host. */
static int exchange(struct resident *r, float *grad, uint32_t *flags, struct err *err)
{
    size_t bytes = (r->len + 1) * sizeof(float);

    if (device_get(r->ctx, grad, r->grad, bytes, err))
        return -1;
    if (!isfinite(grad[r->len]))
        *flags |= COLLECTIVES_NONFINITE;
    if (train_exchange(&r->p, grad, flags, err))
        return -1;
    device_put(r->ctx, r->grad, grad, bytes);
    return r->stages ? resident_stages_squares(r, err) : 0;
}

static int run_whole(struct resident *r, int total, float *grad, uint32_t *flags, struct err *err)
{
    struct recorded *g = resident_graph(r, total, total, true, err);

    if (!g || resident_run_half(r, g, 0, err) ||
        (!r->whole && (exchange(r, grad, flags, err) || resident_run_half(r, g, 1, err))))
        return -1;
    g->used++;
    return 0;
}

static int run_micro_batches(struct resident *r, int total, float *grad, uint32_t *flags, struct err *err)
{
    queue_begin(r);
    const int n = micro_batches(total, r->micro);
    for (int i = 0; i < n; i++) {
        const bool last = i == n - 1 && resident_has_buckets(r);
        struct recorded *g = resident_graph(r, micro_batch_at(total, r->micro, i).rows, total, last, err);
        if (!g || resident_run_half(r, g, 0, err))
            return -1;
        g->used++;
    }
    if (!r->whole && exchange(r, grad, flags, err))
        return -1;
    r->fresh = r->launched == 0;
    int rc = queue_finish(r, total, err);
    r->fresh = false;
    return rc;
}

int resident_step(struct resident *r, int64_t step, double lr, uint32_t flags, bool exact, float *grad,
                  struct train_result *ret, struct err *err)
{
    const struct train_parts *p = &r->p;
    const int batch = p->pipeline->o.batch;
    int64_t left = r->order_len - step * batch;
    int total = (int)(left < batch ? left : batch);
    struct step_order *order = &r->orders[r->launched % RESIDENT_RING];

    /* The slot is free: the device is at most RESIDENT_LAG steps behind. */
    *order = resident_order_of(r, step, lr);
    order->flags = flags;
    if (r->flags)
        flags = 0; /* this rank handles the flags when all ranks do */
    if (resident_read(r, r->launched - RESIDENT_LAG, &flags, err) || resident_windows_put(r, step, err) ||
        (r->micro > 1 ? run_micro_batches : run_whole)(r, total, grad, &flags, err))
        return -1;
    r->ctx->ops->mark(r->ctx, (int)(r->launched % RESIDENT_RING));
    r->launched++;
    p->optim->step++;
    if ((exact || !r->whole) && resident_read(r, r->launched, &flags, err))
        return -1;
    const int back = (int)(r->launched - r->seen);
    *ret = (struct train_result){.back = back,
                                 .known = r->seen > 0,
                                 .loss = r->last.loss,
                                 .own = (double)(pipeline_is_last(p->pipeline) ? r->last.own : r->last.loss),
                                 .flags = flags};
    return 0;
}
