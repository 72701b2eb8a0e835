/* batchnorm.c - {type: batchnorm1d or batchnorm2d, name, eps, momentum}: as torch.nn.BatchNorm1d and 2d. The
 * batch is this rank's, as under DDP. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

enum { EPS, MOMENTUM };
enum { RUNNING_MEAN, RUNNING_VAR, BATCHES };

static const struct spec_option OPTIONS[] = {
    [EPS] = {"eps", SPEC_NUMBER, 1e-12, 1, .fallback = 1e-5},
    [MOMENTUM] = {"momentum", SPEC_NUMBER, 0, 1, .fallback = 0.1},
    {0},
};

static struct batchnorm_shape shape_of(const struct layer *l, int batch)
{
    return (struct batchnorm_shape){.rows = batch * l->in.rows * l->in.cols,
                                    .channels = l->in.channels,
                                    .eps = l->spec->number[EPS],
                                    .momentum = l->spec->number[MOMENTUM]};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    bool flat = l->spec->ops == &layer_batchnorm1d;
    int64_t pixels = (int64_t)l->in.rows * l->in.cols;
    int32_t c = l->in.channels;

    if (flat != l->in.flat)
        return err_set(err, ERR_INVALID, "expected %s as input, got %s", flat ? "a vector" : "an image",
                       flat ? "an image: batchnorm2d takes it" : "a vector: batchnorm1d takes it");
    if (pixels * batch_max > INT32_MAX)
        return err_set(err, ERR_INVALID, "%lld pixels in a batch, expected at most %d",
                       (long long)(pixels * batch_max), INT32_MAX);
    struct batchnorm_shape s = shape_of(l, batch_max);
    if (batchnorm_check(&s, err))
        return -1;
    l->params = 2;
    l->param[0] = (struct layer_param){"weight", 1, {c}};
    l->param[1] = (struct layer_param){"bias", 1, {c}};
    l->buffers = 3;
    l->buffer[RUNNING_MEAN] = (struct layer_buffer){"running_mean", STATE_F32, 1, {c}, 0};
    l->buffer[RUNNING_VAR] = (struct layer_buffer){"running_var", STATE_F32, 1, {c}, 1};
    l->buffer[BATCHES] = (struct layer_buffer){.suffix = "num_batches_tracked", .type = STATE_I64};
    l->workspace_bytes = batchnorm_workspace_bytes(&s);
    l->kept_bytes = 2 * (size_t)c * sizeof(float);
    return 0;
}

static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    (void)g;
    for (int32_t c = 0; c < l->in.channels; c++) {
        param[0][c] = 1;
        param[1][c] = 0;
    }
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct batchnorm_shape s = shape_of(l, p->batch);
    float *mean = p->kept;

    ctx->ops->batchnorm_forward(ctx, &s, p->train, p->out, mean, mean + s.channels, p->buffer[RUNNING_MEAN],
                                p->buffer[RUNNING_VAR], p->in, p->param[0], p->param[1]);
    if (p->train && device_is_host(ctx))
        ++*(int64_t *)p->buffer[BATCHES];
    else if (p->train)
        ctx->ops->queue_count(ctx, p->buffer[BATCHES]);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct batchnorm_shape s = shape_of(l, p->batch);
    const float *mean = p->kept;

    ctx->ops->batchnorm_backward(ctx, &s, p->train, p->din, p->grad[0], p->grad[1], p->dout, p->in, mean,
                                 mean + s.channels, p->param[0]);
}

const struct layer_ops layer_batchnorm1d = {
    .type = "batchnorm1d",
    .about = "torch.nn.BatchNorm1d over a vector; in training by the rank's own batch, as DDP does",
    .options = OPTIONS,
    .named = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
};

const struct layer_ops layer_batchnorm2d = {
    .type = "batchnorm2d",
    .about = "torch.nn.BatchNorm2d over an image; in training by the rank's own batch, as DDP does",
    .options = OPTIONS,
    .named = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
};
