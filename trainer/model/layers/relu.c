/* relu.c - {type: relu}: torch.nn.ReLU, if the layer before cannot apply it. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

static const struct spec_option OPTIONS[] = {{0}};

static size_t len_of(const struct layer *l, const struct layer_pass *p)
{
    return shape_len(&l->in) * (size_t)p->batch;
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    ctx->ops->relu_forward(ctx, p->out, p->in, len_of(l, p));
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    ctx->ops->relu_backward(ctx, p->din, p->dout, p->out, len_of(l, p));
}

const struct layer_ops layer_relu = {
    .type = "relu",
    .about = "the larger of x and 0",
    .options = OPTIONS,
    .forward = forward,
    .backward = backward,
};
