/* linear.c - {type: linear, name, out, bias}: as torch.nn.Linear(in, out, bias), on each vector of a sequence alike. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"
#include "trainer/rng/init.h"

enum { OUT, BIAS };

static const struct spec_option OPTIONS[] = {
    [OUT] = {"out", SPEC_INTEGER, 1, 1 << 24, .required = true},
    [BIAS] = {"bias", SPEC_FLAG, .fallback = 1},
    {0},
};

static struct linear_shape shape_of(const struct layer *l, int batch)
{
    return (struct linear_shape){
        .rows = batch * l->in.rows, .in = l->in.channels, .out = (int)l->spec->option[OUT]};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    struct linear_shape s = shape_of(l, batch_max);

    if (!l->in.flat && !l->in.sequence)
        return err_set(err, ERR_INVALID,
                       "expected a vector as input, got an image of %dx%dx%d: put flatten before", l->in.rows,
                       l->in.cols, l->in.channels);
    if (linear_check(&s, err))
        return -1;
    l->out.channels = s.out;
    l->params = l->spec->option[BIAS] ? 2 : 1;
    l->param[0] = (struct layer_param){"weight", 2, {s.out, s.in}};
    l->param[1] = (struct layer_param){"bias", 1, {s.out}};
    l->workspace_bytes = linear_workspace_bytes(&s);
    return 0;
}

static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    init_default(g, param[0], layer_param_len(&l->param[0]), param[1], (size_t)l->out.channels,
                 (size_t)l->in.channels);
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct linear_shape s = shape_of(l, p->batch);

    ctx->ops->linear_forward(ctx, &s, p->out, p->in, p->param[0], p->param[1], l->relu);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct linear_shape s = shape_of(l, p->batch);

    ctx->ops->linear_backward(ctx, &s, p->din, p->grad[0], p->grad[1], p->dout, l->relu_grad ? p->out : NULL,
                              p->in, p->param[0]);
}

const struct layer_ops layer_linear = {
    .type = "linear",
    .about = "torch.nn.Linear: every output from every input",
    .options = OPTIONS,
    .named = true,
    .elements = true,
    .takes_relu = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
};
