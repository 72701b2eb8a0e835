/* train.c - the step. */
#include "trainer/train.h"

#include "trainer/model/loss.h"

#include <math.h>
#include <stdlib.h>

int train_make(struct train *t, const struct train_parts *p, struct err *err)
{
    size_t batch = (size_t)p->batch_size;
    size_t classes = shape_len(&(struct shape){1, 1, model_output(p->model).channels, true});

    *t = (struct train){.p = *p, .grad_len = model_len(p->model)};
    t->grad = p->comm->shared(p->comm, t->grad_len + 1, p->timeout_ms, err);
    if (!t->grad)
        return -1;
    t->x = calloc(batch * p->feed.pixels, sizeof(float));
    t->dlogits = calloc(batch * classes, sizeof(float));
    t->y = calloc(batch, sizeof(*t->y));
    t->places = calloc(batch, sizeof(*t->places));
    t->order = calloc((size_t)p->sampler.items, sizeof(*t->order));
    if (t->x && t->dlogits && t->y && t->places && t->order)
        return 0;
    train_release(t);
    return err_set(err, ERR_FATAL, "no memory for a batch of %zu samples", batch);
}

void train_release(struct train *t)
{
    free(t->x);
    free(t->dlogits);
    free(t->y);
    free(t->places);
    free(t->order);
    *t = (struct train){0};
}

void train_epoch(struct train *t, int64_t epoch)
{
    sampler_epoch(&t->p.sampler, epoch, t->order);
}

/* This rank's part of the gradient and of the loss, into t->grad. */
static int own_gradient(struct train *t, int64_t step, double *ret_loss, struct err *err)
{
    const struct train_parts *p = &t->p;
    int classes = model_output(p->model).channels;
    float share = 1.0f / (float)p->comm->world;
    struct loss_target target = {.labels = t->y};
    struct loss_result loss;

    int rows = (int)sampler_batch(&p->sampler, t->order, step, p->batch_size, t->places);
    feed_batch(&p->feed, t->places, rows, t->x, t->y);
    struct model_step this = {.seed = p->seed, .step = p->optim->step, .samples = t->places};
    const float *logits = model_forward(p->model, p->ctx, t->x, rows, &this);
    if (loss_of(&p->loss, p->ctx, &loss, t->dlogits, logits, &target, rows, classes, err))
        return -1;
    for (int i = 0; i < rows * classes; i++)
        t->dlogits[i] *= share;
    model_backward(p->model, p->ctx, t->dlogits, t->grad);
    *ret_loss = loss.sum / rows;
    t->grad[t->grad_len] = (float)*ret_loss * share;
    return 0;
}

int train_step(struct train *t, int64_t step, double lr, struct train_result *ret, struct err *err)
{
    const struct train_parts *p = &t->p;
    uint32_t flags = p->stop ? stop_poll(p->stop) : 0;

    if (own_gradient(t, step, &ret->own, err))
        return -1;
    if (!isfinite(t->grad[t->grad_len]))
        flags |= COLLECTIVES_NONFINITE;
    if (p->comm->all_reduce(p->comm, t->grad, t->grad_len + 1, &flags, p->timeout_ms, err))
        return -1;
    ret->loss = t->grad[t->grad_len];
    if (!isfinite(ret->loss))
        flags |= COLLECTIVES_NONFINITE;
    ret->flags = flags;
    if (!(flags & COLLECTIVES_NONFINITE))
        optim_step(p->optim, p->ctx, lr, model_values(p->model), t->grad);
    return 0;
}
