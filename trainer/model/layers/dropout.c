/* dropout.c - {type: dropout, p}: torch.nn.Dropout, with random numbers of this project's generator. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

enum { P };

static const struct spec_option OPTIONS[] = {
    [P] = {"p", SPEC_NUMBER, 0, 0.999, .fallback = 0.5},
    {0},
};

static struct dropout_shape shape_of(const struct layer *l, int batch)
{
    return (struct dropout_shape){.batch = batch, .len = shape_len(&l->in), .p = l->spec->number[P]};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    (void)batch_max;
    (void)err;
    l->saved_bytes = shape_len(&l->in);
    return 0;
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct dropout_shape s = shape_of(l, p->batch);

    if (!p->train) {
        device_copy(ctx, p->out, p->in, s.len * (size_t)p->batch * element_bytes(l->element));
        return;
    }
    struct dropout_draw draw = {.seed = p->step->seed,
                                .step = (uint64_t)p->step->step,
                                .step_at = p->step->step_at,
                                .layer = (uint32_t)l->spec->place,
                                .samples = p->step->samples};
    ctx->ops->dropout_forward(ctx, &s, &draw, p->out, p->saved, p->in);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct dropout_shape s = shape_of(l, p->batch);

    if (p->train)
        ctx->ops->dropout_backward(ctx, &s, p->din, p->dout, p->saved);
    else
        device_copy(ctx, p->din, p->dout, s.len * (size_t)p->batch * element_bytes(l->element));
}

const struct layer_ops layer_dropout = {
    .type = "dropout",
    .about = "torch.nn.Dropout: in training an element is 0 with probability p; the same ones for a seed, "
             "step and sample on any number of ranks",
    .options = OPTIONS,
    .elements = true,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
