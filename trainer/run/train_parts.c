/* train_parts.c - compute the loss of outputs, and reduce a step's gradients over ranks. */
#include "trainer/run/train_parts.h"

#include "collectives/noted.h"

int train_loss(const struct train_parts *p, const struct micro_batch *at, const struct feed_targets *to,
               const float *out, float share, float *dout, float *grad, struct loss_result *ret,
               struct err *err)
{
    struct pipeline *pl = p->pipeline;
    struct kctx *ctx = pl->o.ctx;
    const int rows = at->rows * p->feed.labels;
    const size_t first = (size_t)at->first, values = (size_t)p->feed.values;
    const int32_t *labels = to->labels + first * (size_t)p->feed.labels;
    const struct head_target head = {.labels = labels, .share = share / (float)rows};

    if (model_has_head(pl->model)) /* the head computes the loss */
        return pipeline_head_loss(pl, at, &head, dout, grad, ret, err);
    if (values)
        *ret = (struct loss_result){
            .sum = ctx->ops->mse(ctx, dout, out, to->values + first * values, rows, pl->output.channels)};
    else if (ctx->ops->cross_entropy(ctx, ret, dout, out, labels, rows, pl->output.channels,
                                     p->loss.label_smoothing, err))
        return -1;
    for (size_t i = 0; dout && i < (size_t)at->rows * pl->forward_len; i++)
        dout[i] *= share;
    return 0;
}

int train_exchange(const struct train_parts *p, float *grad, uint32_t *flags, struct err *err)
{
    const struct pipeline_options *o = &p->pipeline->o;
    const size_t len = p->pipeline->model->len, first = p->pipeline->at.stages == 1 ? 0 : len;

    return collectives_all_reduce(o->comm, grad + first, len + 1 - first, flags, o->timeout_ms, err);
}
