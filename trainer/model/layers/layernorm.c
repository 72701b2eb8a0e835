/* layernorm.c - {type: layernorm, name, eps, bias}: as torch.nn.LayerNorm over a vector, or each of a sequence. */
#include "trainer/model/layer.h"

#include "kernels/layernorm.h"

enum { EPS, BIAS };

static const struct layer_option OPTIONS[] = {
    [EPS] = {"eps", LAYER_NUMBER, 1e-12, 1, .fallback = 1e-5},
    [BIAS] = {"bias", LAYER_FLAG, .fallback = 1},
    {0},
};

static struct layernorm_shape shape_of(const struct layer *l, int batch)
{
    return (struct layernorm_shape){
        .rows = batch * l->in.rows, .channels = l->in.channels, .eps = l->spec->number[EPS]};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    struct layernorm_shape s = shape_of(l, batch_max);

    if (!l->in.flat && !l->in.sequence)
        return err_set(err, ERR_INVALID,
                       "expected a vector as input, got an image of %dx%dx%d: put flatten before", l->in.rows,
                       l->in.cols, l->in.channels);
    if (layernorm_check(&s, err))
        return -1;
    l->out = l->in;
    l->params = l->spec->option[BIAS] ? 2 : 1;
    l->param[0] = (struct layer_param){"weight", 1, {l->in.channels}};
    l->param[1] = (struct layer_param){"bias", 1, {l->in.channels}};
    l->saved_bytes = (size_t)l->in.rows * 2 * sizeof(float);
    return 0;
}

static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    (void)g;
    for (int32_t c = 0; c < l->in.channels; c++) {
        param[0][c] = 1;
        if (param[1])
            param[1][c] = 0;
    }
}

/* Of a batch: means first, then what the rows are multiplied by. */
static float *means(const struct layer_pass *p)
{
    return (float *)(void *)p->saved;
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct layernorm_shape s = shape_of(l, p->batch);

    layernorm_forward(ctx, &s, p->out, means(p), means(p) + s.rows, p->in, p->param[0], p->param[1]);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct layernorm_shape s = shape_of(l, p->batch);

    layernorm_backward(ctx, &s, p->din, p->grad[0], p->grad[1], p->dout, p->in, means(p), means(p) + s.rows,
                       p->param[0]);
}

const struct layer_ops layer_layernorm = {
    .type = "layernorm",
    .about = "torch.nn.LayerNorm over a vector",
    .options = OPTIONS,
    .named = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
};
