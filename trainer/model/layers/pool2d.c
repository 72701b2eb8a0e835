/* pool2d.c - {type: maxpool2d, size, stride, padding} and {type: avgpool2d, size, stride, padding, count_include_pad}: as
 * torch.nn.MaxPool2d and AvgPool2d. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

enum { SIZE, STRIDE, PADDING, COUNT_INCLUDE_PAD };

#define WINDOW_OPTIONS                                                                                       \
    [SIZE] = {"size", SPEC_INTEGER, 1, 15, .required = true},                                                \
    [STRIDE] = {"stride", SPEC_INTEGER, 0, 64, .fallback = 0}, /* 0: equal to size */                        \
        [PADDING] = {"padding", SPEC_INTEGER, 0, 7, .fallback = 0}

static const struct spec_option MAX_OPTIONS[] = {WINDOW_OPTIONS, {0}};
static const struct spec_option AVG_OPTIONS[] = {
    WINDOW_OPTIONS,
    [COUNT_INCLUDE_PAD] = {"count_include_pad", SPEC_FLAG, .fallback = 1},
    {0},
};

static struct pool2d_shape shape_of(const struct layer *l, int batch)
{
    int64_t stride = l->spec->option[STRIDE] ? l->spec->option[STRIDE] : l->spec->option[SIZE];

    return (struct pool2d_shape){.batch = batch,
                                 .in_h = l->in.rows,
                                 .in_w = l->in.cols,
                                 .in_c = l->in.channels,
                                 .window = (int)l->spec->option[SIZE],
                                 .stride = (int)stride,
                                 .pad = (int)l->spec->option[PADDING]};
}

static int plan_avg(struct layer *l, int batch_max, struct err *err)
{
    struct pool2d_shape s = shape_of(l, batch_max);

    if (l->in.flat)
        return err_set(err, ERR_INVALID, "expected an image as input, got a vector");
    if (pool2d_check(&s, err))
        return -1;
    l->out = (struct shape){.rows = pool2d_out_h(&s), .cols = pool2d_out_w(&s), .channels = s.in_c};
    return 0;
}

/* The backward pass needs the index of the largest element of each window. */
static int plan_max(struct layer *l, int batch_max, struct err *err)
{
    if (plan_avg(l, batch_max, err))
        return -1;
    l->saved_bytes = shape_len(&l->out);
    return 0;
}

static void forward_max(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct pool2d_shape s = shape_of(l, p->batch);

    ctx->ops->maxpool2d_forward(ctx, &s, p->out, p->saved, p->in);
}

static void backward_max(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct pool2d_shape s = shape_of(l, p->batch);

    ctx->ops->maxpool2d_backward(ctx, &s, p->din, p->dout, p->saved, l->out_masked ? p->out : NULL);
}

const struct layer_ops layer_maxpool2d = {
    .type = "maxpool2d",
    .about = "torch.nn.MaxPool2d: the largest of each window; stride 0 is the size",
    .options = MAX_OPTIONS,
    .masks_relu = true,
    .plan = plan_max,
    .forward = forward_max,
    .backward = backward_max,
};

static struct pool2d_shape mean_shape_of(const struct layer *l, int batch)
{
    struct pool2d_shape s = shape_of(l, batch);

    s.inside = !l->spec->option[COUNT_INCLUDE_PAD];
    return s;
}

static void forward_avg(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct pool2d_shape s = mean_shape_of(l, p->batch);

    ctx->ops->avgpool2d_forward(ctx, &s, p->out, p->in);
}

static void backward_avg(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct pool2d_shape s = mean_shape_of(l, p->batch);

    ctx->ops->avgpool2d_backward(ctx, &s, p->din, p->dout);
}

const struct layer_ops layer_avgpool2d = {
    .type = "avgpool2d",
    .about = "torch.nn.AvgPool2d: the mean of each window; stride 0 is the size, padding counts as zeros or, "
             "with count_include_pad: false, not",
    .options = AVG_OPTIONS,
    .plan = plan_avg,
    .forward = forward_avg,
    .backward = backward_avg,
};
