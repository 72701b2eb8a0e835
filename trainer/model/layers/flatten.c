/* flatten.c - {type: flatten}: torch.nn.Flatten, an image as a vector in the order (channels, rows, columns). */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

static const struct spec_option OPTIONS[] = {{0}};

static struct flatten_shape shape_of(const struct layer *l, int batch)
{
    return (struct flatten_shape){.batch = batch, .h = l->in.rows, .w = l->in.cols, .c = l->in.channels};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    struct flatten_shape s = shape_of(l, batch_max);

    if (flatten_check(&s, err))
        return -1;
    l->out = (struct shape){.rows = 1, .cols = 1, .channels = (int32_t)shape_len(&l->in), .flat = true};
    l->alias = l->in.channels == 1 || l->in.rows * l->in.cols == 1; /* both orders are equal */
    return 0;
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct flatten_shape s = shape_of(l, p->batch);

    ctx->ops->flatten_forward(ctx, &s, p->out, p->in);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct flatten_shape s = shape_of(l, p->batch);

    ctx->ops->flatten_backward(ctx, &s, p->din, p->dout);
}

const struct layer_ops layer_flatten = {
    .type = "flatten",
    .about = "an image as a vector, channels first as PyTorch has them",
    .options = OPTIONS,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
