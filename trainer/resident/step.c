/* step.c - the step on a device: what is queued for it, and the exchange between. */
#include "trainer/resident/state.h"

#include "trainer/model/loss.h"

#include <math.h>
#include <stdlib.h>

void resident_push(struct resident *r)
{
    const struct optim *o = r->p.optim;

    model_push(r->model, o->step);
    if (r->m)
        device_put(r->ctx, r->m, o->m, r->len * sizeof(float));
    if (r->v)
        device_put(r->ctx, r->v, o->v, r->len * sizeof(float));
}

int resident_pull(struct resident *r, struct err *err)
{
    const struct optim *o = r->p.optim;

    return resident_settle(r, err) || resident_check_steps(r, err) || model_pull(r->model, err) ||
                   (r->m && device_get(r->ctx, o->m, r->m, r->len * sizeof(float), err)) ||
                   (r->v && device_get(r->ctx, o->v, r->v, r->len * sizeof(float), err))
               ? -1
               : 0;
}

int resident_order(struct resident *r, const struct sampler *s, const uint32_t *order, struct err *err)
{
    struct step_state now;
    cleanup_free uint32_t *mine = calloc((size_t)r->order_max, sizeof(*mine));

    r->order_len = sampler_len(s);
    if (!mine)
        return err_set(err, ERR_FATAL, "no memory for the order of an epoch");
    if (r->order_len > r->order_max)
        return err_set(err, ERR_INVALID, "%lld places left of an epoch, expected at most %lld",
                       (long long)r->order_len, (long long)r->order_max);
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
    *own = now.own_sum;
    *mean = now.mean_sum;
    return 0;
}

static void queue_gradient(struct resident *r, int rows)
{
    const struct train_parts *p = &r->p;
    const float share = 1.0f / (float)p->pipeline->at.replicas;
    const struct model_step this = {
        .seed = p->seed, .step_at = &r->state->now.step, .samples = r->batch.samples};

    queue_step_begin(r->ctx, r->state, r->orders, RESIDENT_RING, r->flags);
    queue_gather(r->ctx, &r->train.gather, &r->batch, r->train_items, r->order, &r->state->now.first, rows);
    const float *out = model_forward(r->model, r->ctx, r->batch.x, rows, &this);
    if (r->labels)
        queue_cross_entropy(r->ctx, r->loss, r->grad + r->len, r->dlogits, out, r->batch.labels, rows,
                            r->classes, p->loss.label_smoothing, share, false);
    else
        queue_mse(r->ctx, r->loss, r->grad + r->len, r->dlogits, out, r->batch.values, rows, r->classes,
                  share, false);
    model_backward(r->model, r->ctx, r->dlogits, r->grad);
}

static void queue_update(struct resident *r, int rows)
{
    const struct optim *o = r->p.optim;
    const float *loss = r->grad + r->len;
    const struct queued_params w = model_trained(r->model);

    if (o->spec.type == OPTIMIZER_SGD)
        queue_sgd(r->ctx, r->state, loss, NULL, r->span, o->spans, &w, r->m, r->grad);
    else
        queue_adam(r->ctx, r->state, loss, NULL, r->span, o->spans, &w, r->m, r->v, r->grad);
    queue_step_end(r->ctx, r->state, r->loss, rows, loss, r->flags, r->records, RESIDENT_RING);
}

/* Half 0: up to the gradient, and to the end where a step is whole. Half 1: the rest. */
int resident_queue_half(struct resident *r, int half, int rows, struct err *err)
{
    struct device_comm *c = r->p.device_comm;

    if (half == 0)
        queue_gradient(r, rows);
    if (c && c->all_reduce(c, r->grad, r->len + 1 + QUEUED_FLAGS, DEVICE_F32, device_stream(r->ctx), err))
        return -1;
    if (half == 1 || r->whole)
        queue_update(r, rows);
    return 0;
}

/* The gradients of all ranks, by way of the process. */
static int exchange(struct resident *r, float *grad, uint32_t *flags, struct err *err)
{
    struct collectives *c = r->p.pipeline->replicas;
    size_t bytes = (r->len + 1) * sizeof(float);

    if (device_get(r->ctx, grad, r->grad, bytes, err))
        return -1;
    if (!isfinite(grad[r->len]))
        *flags |= COLLECTIVES_NONFINITE;
    if (c->all_reduce(c, grad, r->len + 1, flags, r->p.timeout_ms, err))
        return -1;
    device_put(r->ctx, r->grad, grad, bytes);
    return 0;
}

int resident_step(struct resident *r, int64_t step, double lr, uint32_t flags, bool exact, float *grad,
                  struct train_result *ret, struct err *err)
{
    const struct train_parts *p = &r->p;
    int64_t left = r->order_len - step * p->batch_size;
    struct recorded *g = resident_graph(r, (int)(left < p->batch_size ? left : p->batch_size));

    r->orders[r->launched % RESIDENT_RING] = resident_order_of(r, step, lr);
    r->orders[r->launched % RESIDENT_RING].flags = flags;
    if (r->flags)
        flags = 0; /* what all ranks hear, this one shall hear when they do */
    /* Who is RESIDENT_LAG behind has left its slot of the ring long ago. */
    if (resident_read(r, r->launched - RESIDENT_LAG, &flags, err) || resident_run_half(r, g, 0, err) ||
        (!r->whole && (exchange(r, grad, &flags, err) || resident_run_half(r, g, 1, err))))
        return -1;
    g->used++;
    device_mark(r->ctx, (int)(r->launched % RESIDENT_RING));
    r->launched++;
    p->optim->step++;
    if ((exact || !r->whole) && resident_read(r, r->launched, &flags, err))
        return -1;
    *ret = (struct train_result){.back = (int)(r->launched - r->seen),
                                 .known = r->seen > 0,
                                 .loss = r->last.loss,
                                 .own = (double)r->last.own,
                                 .flags = flags};
    return 0;
}
