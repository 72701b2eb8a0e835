/* stages.c - queue a step of a model in stages: gather the samples of all micro-batches, all forward passes,
 * all backward passes (pipeline/pipeline.h), reduce loss and flags over all stages.
 *
 * Every stage gets the sample numbers: middle stages need only these (dropout).
 */
#include "trainer/run/resident/resident_state.h"

/* Transfers by the host cannot be recorded. */
bool resident_stages_recordable(const struct resident *r)
{
    return !r->stages || r->p.pipeline->o.device_comm;
}

static int queue_forward(struct resident *r, const struct micro_batch *at, int total, struct err *err)
{
    const struct train_parts *p = &r->p;
    const struct model_step this = {
        .seed = p->seed, .step_at = &r->state->now.step, .samples = r->batch.samples + at->first};
    const float share = (float)at->rows / (float)total;
    const void *out;

    if (pipeline_forward(p->pipeline, at, r->batch.x + (size_t)at->first * p->feed.len, &this, &out, err))
        return -1;
    return out ? resident_queue_loss(r, at, out, share, r->loss, r->grad, err) : 0;
}

int resident_stages_queue(struct resident *r, int total, struct err *err)
{
    struct pipeline *pl = r->p.pipeline;
    const int n = micro_batches(total, pl->o.micro_batches);

    resident_queue_samples(r, total);
    if (!pipeline_is_last(pl)) /* only the last stage has a loss to add */
        device_zero(r->ctx, r->loss_sum, sizeof(*r->loss_sum));
    for (int i = 0; i < n; i++) {
        const struct micro_batch at = micro_batch_at(total, pl->o.micro_batches, i);
        if (queue_forward(r, &at, total, err))
            return -1;
    }
    for (int i = 0; i < n; i++) {
        const struct micro_batch at = micro_batch_at(total, pl->o.micro_batches, i);
        if (pipeline_backward(pl, &at, resident_dlogits(r, &at), r->grad, err))
            return -1;
    }
    return 0;
}

int resident_stages_sum(struct resident *r, struct err *err)
{
    struct device_comm *all = r->p.pipeline->o.device_comm;
    void *stream = r->ctx->ops->stream(r->ctx);

    if (all->all_reduce(all, r->loss_sum, 1 + QUEUED_FLAGS, DEVICE_F32, stream, err))
        return -1;
    if (!r->norm)
        return 0;
    if (resident_arrived(r, stream, err))
        return -1;
    r->ctx->ops->queue_squares(r->ctx, r->norm, r->grad, r->len);
    return all->all_reduce(all, &r->norm->squares, 1, DEVICE_F64, stream, err);
}

int resident_stages_squares(struct resident *r, struct err *err)
{
    double squares;

    if (!r->norm)
        return 0;
    r->ctx->ops->queue_squares(r->ctx, r->norm, r->grad, r->len);
    if (device_get(r->ctx, &squares, &r->norm->squares, sizeof(squares), err) ||
        pipeline_sum(r->p.pipeline, &squares, err))
        return -1;
    device_put(r->ctx, &r->norm->squares, &squares, sizeof(squares));
    return 0;
}
