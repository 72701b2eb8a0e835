/* gelu.c - {type: gelu, approximate}: torch.nn.GELU. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

enum { APPROXIMATE };

static const char *const FORMS[] = {[GELU_EXACT] = "none", [GELU_TANH] = "tanh", NULL};

static const struct spec_option OPTIONS[] = {
    [APPROXIMATE] = {"approximate", SPEC_CHOICE, .fallback = GELU_EXACT, .choices = FORMS},
    {0},
};

static size_t len_of(const struct layer *l, const struct layer_pass *p)
{
    return shape_len(&l->in) * (size_t)p->batch;
}

static enum gelu_form form_of(const struct layer *l)
{
    return (enum gelu_form)l->spec->option[APPROXIMATE];
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    ctx->ops->gelu_forward(ctx, form_of(l), p->out, p->in, len_of(l, p));
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    ctx->ops->gelu_backward(ctx, form_of(l), p->din, p->dout, p->in, len_of(l, p));
}

const struct layer_ops layer_gelu = {
    .type = "gelu",
    .about = "torch.nn.GELU: x times the normal distribution at x",
    .options = OPTIONS,
    .elements = true,
    .forward = forward,
    .backward = backward,
};
