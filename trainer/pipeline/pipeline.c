/* pipeline.c - run one stage of a pipeline: allocate its memory, run the forward and backward passes of all
 * micro-batches. */
#include "trainer/pipeline/pipeline.h"

#include "collectives/device.h"
#include "collectives/noted.h"
#include "collectives/reduce.h"
#include "common/memory.h"
#include "kernels/ops.h"

#include <stdlib.h>
#include <string.h>

/* A head writes gradients right after the forward pass. With several stages all forward passes come first, so
 * they would overwrite the gradients of other micro-batches: refuse a head. */
static int check_no_head(const struct pipeline *p, int stage, const struct model_spec *spec,
                         const struct model *m, struct err *err)
{
    if (p->at.stages == 1 || !model_has_head(m))
        return 0;
    return err_set(err, ERR_INVALID, "model.stages: stage %d ends in %s: expected a model in one piece",
                   stage, spec->layer[spec->layers - 1].ops->type);
}

/* A stage's input shape is the previous one's output, so plan the stages in order; keep this rank's. */
static int make_stages(struct pipeline *p, int batch, struct err *err)
{
    struct shape shape = p->o.spec->input;
    cleanup_free struct model_spec *spec = memory_must(calloc(1, sizeof(*spec)));

    p->stage = memory_must(calloc(1, sizeof(*p->stage)));
    for (int s = 0; s < p->at.stages; s++) {
        bool mine = s == p->at.stage;
        struct model_spec *to = mine ? p->stage : spec;
        pipeline_stage_spec(p->o.spec, s, p->at.stages, &shape, to);
        cleanup_model struct model *m = model_make(to, mine ? batch : 1, err);
        if (!m || check_no_head(p, s, to, m, err))
            return -1;
        if (mine)
            p->in_len = shape_len(&shape);
        shape = model_output(m);
        p->forward_len = model_forward_len(m);
        if (mine)
            p->out_len = p->forward_len;
        p->whole_len += m->len;
        p->values_at[s + 1] = p->whole_len * sizeof(float);
        p->buffers_at[s + 1] = p->buffers_at[s] + m->buffers_bytes;
        if (mine)
            p->model = TAKE(m);
    }
    p->output = shape;
    return 0;
}

/* Move the stage to the device, before twins exist. For a model that is not split, resident/ does it. */
static int place(struct pipeline *p, struct err *err)
{
    return p->at.stages > 1 ? model_to_device(p->model, p->o.ctx, err) : 0;
}

/* Without stages each backward pass follows its forward pass, so no twins are needed. */
static int make_twins(struct pipeline *p, struct err *err)
{
    for (int i = 1; i < p->o.micro_batches && p->at.stages > 1; i++)
        if (!(p->twin[i] = model_twin(p->model, err)))
            return -1;
    return 0;
}

/* Allocate the host buffer for transfers: the largest single one. */
static int make_passing(struct pipeline *p, size_t most, struct err *err)
{
    const size_t len = p->in_len > p->out_len ? p->in_len : p->out_len;

    if (p->at.stages == 1 || p->o.device_comm || device_is_host(p->o.ctx))
        return 0;
    p->passing = host_zeroed(len * most * sizeof(float), err);
    return p->passing ? 0 : -1;
}

static int make_between(struct pipeline *p, int micro, int most, struct err *err)
{
    const size_t each = element_bytes(p->o.spec->numbers.element);
    struct kctx *ctx = p->o.ctx;
    size_t kept = (size_t)micro * (size_t)p->o.micro_batches;

    if (kept < (size_t)most)
        kept = (size_t)most;
    if (!pipeline_is_first(p) && (!(p->in = device_alloc(ctx, p->in_len * kept * each, err)) ||
                                  !(p->din = device_alloc(ctx, p->in_len * (size_t)micro * each, err))))
        return -1;
    if (!pipeline_is_last(p) && !(p->dout = device_alloc(ctx, p->out_len * (size_t)micro * each, err)))
        return -1;
    /* Without stages, resident/ allocates its own. */
    if (p->o.micro_batches > 1 && (p->at.stages > 1 || device_is_host(p->o.ctx)) &&
        !(p->more = device_alloc(ctx, p->model->len * sizeof(float), err)))
        return -1;
    return make_passing(p, (size_t)most, err);
}

int pipeline_open(struct pipeline *p, const struct pipeline_options *o, struct err *err)
{
    *p = (struct pipeline){.o = *o};
    if (!p->o.micro_batches)
        p->o.micro_batches = 1;
    if (p->o.micro_batches < 1 || p->o.micro_batches > MICRO_BATCHES_MAX || p->o.micro_batches > o->batch)
        return err_set(err, ERR_INVALID,
                       "micro_batches: %d, expected 1..%d and no more than the batch size (%d)",
                       o->micro_batches, MICRO_BATCHES_MAX, o->batch);
    int micro = micro_batch_at(o->batch, p->o.micro_batches, 0).rows;
    int most = micro > o->evaluate ? micro : o->evaluate;
    if (pipeline_position_of(o->spec, o->comm->rank, o->comm->world, &p->at, err) ||
        make_stages(p, most, err) || place(p, err) || make_twins(p, err) ||
        make_between(p, micro, most, err) ||
        (p->at.stages > 1 && o->comm->rank == 0 && !(p->whole = model_make(o->spec, 1, err))) ||
        kctx_reserve(o->ctx,
                     model_workspace_bytes(p->model, device_is_host(o->ctx) ? kctx_threads(o->ctx) : 1),
                     err)) {
        pipeline_release(p);
        return -1;
    }
    return 0;
}

void pipeline_release(struct pipeline *p)
{
    for (int i = 1; i < MICRO_BATCHES_MAX; i++)
        model_free(p->twin[i]);
    model_free(p->whole);
    model_free(p->model);
    free(p->stage);
    device_free(p->o.ctx, p->in);
    device_free(p->o.ctx, p->din);
    device_free(p->o.ctx, p->dout);
    device_free(p->o.ctx, p->more);
    free(p->passing);
    *p = (struct pipeline){0};
}

static struct model *model_of(const struct pipeline *p, const struct micro_batch *at)
{
    return p->at.stages > 1 && at->index ? p->twin[at->index] : p->model;
}

int pipeline_forward(struct pipeline *p, const struct micro_batch *at, const float *x,
                     const struct model_step *step, const void **ret, struct err *err)
{
    const int rank = p->o.comm->rank;
    size_t rows = (size_t)at->rows;

    *ret = NULL;
    if (!pipeline_is_first(p)) {
        void *in = (char *)p->in + (size_t)at->first * p->in_len * element_bytes(p->o.spec->numbers.element);
        if (pipeline_recv(p, in, rows * p->in_len, rank - 1, err))
            return -1;
        x = in;
    }
    const void *out = model_forward(model_of(p, at), p->o.ctx, x, at->rows, step);
    if (!pipeline_is_last(p))
        return pipeline_send(p, out, rows * p->out_len, rank + 1, err);
    *ret = out;
    return 0;
}

int pipeline_head_loss(struct pipeline *p, const struct micro_batch *at, const struct head_target *t,
                       void *dout, float *grad, struct loss_result *ret, struct err *err)
{
    return model_head_loss(p->model, p->o.ctx, t, dout, grad && at->index ? p->more : grad, ret, err);
}

int pipeline_backward(struct pipeline *p, const struct micro_batch *at, const void *dout, float *grad,
                      struct err *err)
{
    const int rank = p->o.comm->rank;
    size_t rows = (size_t)at->rows;
    float *to = at->index ? p->more : grad;

    if (!pipeline_is_last(p)) {
        if (pipeline_recv(p, p->dout, rows * p->out_len, rank + 1, err))
            return -1;
        dout = p->dout;
    }
    model_backward(model_of(p, at), p->o.ctx, dout, to, p->din);
    /* First send the gradient that the previous stage waits for. */
    if (!pipeline_is_first(p) && pipeline_send(p, p->din, rows * p->in_len, rank - 1, err))
        return -1;
    if (to != grad && !device_is_host(p->o.ctx))
        p->o.ctx->ops->queue_accumulate(p->o.ctx, grad, to, p->model->len);
    else if (to != grad)
        reduce_vectors(REDUCE_F32, (void *const[]){grad}, 1, (const void *const[]){grad, to}, 2,
                       p->model->len);
    return 0;
}

int pipeline_sum(struct pipeline *p, double *x, struct err *err)
{
    struct collectives *c = p->o.comm;

    return p->at.stages > 1 ? collectives_all_reduce_f64(c, x, 1, p->o.timeout_ms, err) : 0;
}
