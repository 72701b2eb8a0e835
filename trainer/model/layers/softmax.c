/* softmax.c - {type: softmax}: torch.nn.Softmax over each vector. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

static const struct spec_option OPTIONS[] = {{0}};

static int plan(struct layer *l, int batch_max, struct err *err)
{
    (void)batch_max;
    if (!l->in.flat)
        return err_set(err, ERR_INVALID, "expected a vector as input, got an image of %dx%dx%d", l->in.rows,
                       l->in.cols, l->in.channels);
    return 0;
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    ctx->ops->softmax_forward(ctx, p->out, p->in, p->batch, l->in.channels);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    ctx->ops->softmax_backward(ctx, p->din, p->dout, p->out, p->batch, l->in.channels);
}

const struct layer_ops layer_softmax = {
    .type = "softmax",
    .about = "a vector as probabilities",
    .options = OPTIONS,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
