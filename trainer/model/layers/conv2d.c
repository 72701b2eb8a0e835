/* conv2d.c - {type: conv2d, name, out, kernel, stride, padding, dilation, bias}: torch.nn.Conv2d. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"
#include "trainer/rng/init.h"

enum { OUT, KERNEL, STRIDE, PADDING, DILATION, BIAS };

static const struct spec_option OPTIONS[] = {
    [OUT] = {"out", SPEC_INTEGER, 1, 65536, .required = true},
    [KERNEL] = {"kernel", SPEC_INTEGER, 1, 64, .required = true},
    [STRIDE] = {"stride", SPEC_INTEGER, 1, 64, .fallback = 1},
    [PADDING] = {"padding", SPEC_INTEGER, 0, 64, .fallback = 0},
    [DILATION] = {"dilation", SPEC_INTEGER, 1, 64, .fallback = 1},
    [BIAS] = {"bias", SPEC_FLAG, .fallback = 1},
    {0},
};

static struct conv2d_shape shape_of(const struct layer *l, int batch)
{
    int kernel = (int)l->spec->option[KERNEL];

    return (struct conv2d_shape){.batch = batch,
                                 .in_h = l->in.rows,
                                 .in_w = l->in.cols,
                                 .in_c = l->in.channels,
                                 .out_c = (int)l->spec->option[OUT],
                                 .k_h = kernel,
                                 .k_w = kernel,
                                 .stride = (int)l->spec->option[STRIDE],
                                 .pad = (int)l->spec->option[PADDING],
                                 .dilation = (int)l->spec->option[DILATION]};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    struct conv2d_shape s = shape_of(l, batch_max);

    if (l->in.flat)
        return err_set(err, ERR_INVALID, "expected an image as input, got a vector");
    if (conv2d_check(&s, err))
        return -1;
    l->out = (struct shape){.rows = conv2d_out_h(&s), .cols = conv2d_out_w(&s), .channels = s.out_c};
    l->params = l->spec->option[BIAS] ? 2 : 1;
    l->param[0] = (struct layer_param){"weight", 4, {s.out_c, s.in_c, s.k_h, s.k_w}};
    l->param[1] = (struct layer_param){"bias", 1, {s.out_c}};
    l->workspace_bytes = conv2d_workspace_bytes(&s);
    return 0;
}

static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    const size_t weights = layer_param_len(&l->param[0]), out = (size_t)l->out.channels;

    init_default(g, param[0], weights, param[1], out, weights / out);
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct conv2d_shape s = shape_of(l, p->batch);

    ctx->ops->conv2d_forward(ctx, &s, p->out, p->in, p->param[0], p->param[1], l->relu);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct conv2d_shape s = shape_of(l, p->batch);

    ctx->ops->conv2d_backward(ctx, &s, p->din, p->grad[0], p->grad[1], p->dout, l->relu_grad ? p->out : NULL,
                              p->in, p->param[0]);
}

const struct layer_ops layer_conv2d = {
    .type = "conv2d",
    .about = "torch.nn.Conv2d over an image, without groups",
    .options = OPTIONS,
    .named = true,
    .takes_relu = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
};
