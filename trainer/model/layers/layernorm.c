/* layernorm.c - {type: layernorm, name, eps, bias}: as torch.nn.LayerNorm over a vector, over each vector of
 * a sequence, or over a whole image. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

enum { EPS, BIAS };

static const struct spec_option OPTIONS[] = {
    [EPS] = {"eps", SPEC_NUMBER, 1e-12, 1, .fallback = 1e-5},
    [BIAS] = {"bias", SPEC_FLAG, .fallback = 1},
    {0},
};

static bool is_image(const struct layer *l)
{
    return !l->in.flat && !l->in.sequence;
}

/* The number of elements that are normalised together. */
static int32_t len_of(const struct layer *l)
{
    return is_image(l) ? (int32_t)shape_len(&l->in) : l->in.channels;
}

static struct layernorm_shape shape_of(const struct layer *l, int batch)
{
    return (struct layernorm_shape){
        .rows = is_image(l) ? batch : batch * l->in.rows, .channels = len_of(l), .eps = l->spec->number[EPS]};
}

/* Parameters are channels first, as in PyTorch, and images channels last. If the two differ, each pass
 * transposes the parameters, which is less work than the batch. */
static bool transposed(const struct layer *l)
{
    return is_image(l) && l->in.channels > 1 && l->in.rows * l->in.cols > 1;
}

static struct flatten_shape image_of(const struct layer *l)
{
    return (struct flatten_shape){.batch = 1, .h = l->in.rows, .w = l->in.cols, .c = l->in.channels};
}

static struct layer_param param_of(const struct layer *l, const char *suffix)
{
    if (!is_image(l))
        return (struct layer_param){suffix, 1, {l->in.channels}};
    return (struct layer_param){suffix, 3, {l->in.channels, l->in.rows, l->in.cols}};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    struct layernorm_shape s = shape_of(l, batch_max);

    if (layernorm_check(&s, err))
        return -1;
    l->params = l->spec->option[BIAS] ? 2 : 1;
    l->param[0] = param_of(l, "weight");
    l->param[1] = param_of(l, "bias");
    l->f32[0] = l->f32[1] = true;
    l->saved_bytes = (size_t)(is_image(l) ? 1 : l->in.rows) * 2 * sizeof(float);
    if (transposed(l))
        l->kept_bytes = 4 * shape_len(&l->in) * sizeof(float);
    return 0;
}

static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    (void)g;
    for (size_t i = 0; i < (size_t)len_of(l); i++) {
        param[0][i] = 1;
        if (param[1])
            param[1][i] = 0;
    }
}

/* A batch's means, followed by the factors of the rows. */
static float *means(const struct layer_pass *p)
{
    return (float *)(void *)p->saved;
}

/* For transposed parameters: weight, bias and their gradients. */
static float *kept(const struct layer *l, const struct layer_pass *p, int which)
{
    return (float *)p->kept + (size_t)which * shape_len(&l->in);
}

static const float *turn(const struct layer *l, struct kctx *ctx, const struct layer_pass *p, int which)
{
    struct flatten_shape image = image_of(l);

    if (!transposed(l) || !p->param[which])
        return p->param[which];
    ctx->ops->flatten_backward(ctx, &image, kept(l, p, which), p->param[which]);
    return kept(l, p, which);
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct layernorm_shape s = shape_of(l, p->batch);
    const float *weight = turn(l, ctx, p, 0);
    const float *bias = turn(l, ctx, p, 1);

    ctx->ops->layernorm_forward(ctx, &s, p->out, means(p), means(p) + s.rows, p->in, weight, bias);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct layernorm_shape s = shape_of(l, p->batch);
    struct flatten_shape image = image_of(l);
    float *grad[2] = {p->grad[0], p->grad[1]};

    for (int i = 0; i < 2 && transposed(l); i++)
        grad[i] = p->grad[i] ? kept(l, p, 2 + i) : NULL;
    ctx->ops->layernorm_backward(ctx, &s, p->din, grad[0], grad[1], p->dout, NULL, p->in, means(p),
                                 means(p) + s.rows, transposed(l) ? kept(l, p, 0) : p->param[0]);
    for (int i = 0; i < 2 && transposed(l); i++)
        if (grad[i])
            ctx->ops->flatten_forward(ctx, &image, p->grad[i], grad[i]);
}

const struct layer_ops layer_layernorm = {
    .type = "layernorm",
    .about = "torch.nn.LayerNorm over a vector, over each of a sequence, or over channels, rows and "
             "columns of an image",
    .options = OPTIONS,
    .named = true,
    .elements = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
};
