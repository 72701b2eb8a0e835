/* lm_head.c - {type: lm_head, name, vocab}: logits of the next token, by the embedding's matrix; ends a model
 * of sequences and computes its cross entropy. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

enum { VOCAB };

static const struct spec_option OPTIONS[] = {
    [VOCAB] = {"vocab", SPEC_INTEGER, 1, 1 << 24, .required = true},
    {0},
};

static struct linear_shape shape_of(const struct layer *l, int batch)
{
    return (struct linear_shape){
        .rows = batch * l->in.rows, .in = l->in.channels, .out = (int)l->spec->option[VOCAB]};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    struct linear_shape s = shape_of(l, batch_max);

    if (!l->in.sequence)
        return err_set(err, ERR_INVALID, "expected a sequence as input");
    if (classifier_check(&s, err))
        return -1;
    l->out = (struct shape){.rows = l->in.rows, .cols = 1, .channels = s.out, .sequence = true};
    l->params = 1;
    l->param[0] = (struct layer_param){"weight", 2, {s.out, s.in}};
    l->tied[0] = "wte.weight";
    l->workspace_bytes = classifier_workspace_bytes(&s);
    return 0;
}

/* build-nanogpt initialises the shared matrix twice; these are the final values. */
static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    torch_rng_normal(g, 0, 0.02, param[0], layer_param_len(&l->param[0]));
}

static uint64_t draws(const struct layer *l)
{
    return layer_param_len(&l->param[0]); /* uniform, no bias */
}

static int loss(const struct layer *l, struct kctx *ctx, const struct layer_pass *p,
                const struct head_target *t, struct loss_result *ret, struct err *err)
{
    struct linear_shape s = shape_of(l, p->batch);

    if (t->queued) {
        ctx->ops->queue_classifier(ctx, &s, t->queued, t->mean, p->din, p->grad[0], p->in, p->param[0],
                                   t->labels, t->share, true);
        return 0;
    }
    return ctx->ops->classifier(ctx, &s, ret, p->din, p->grad[0], p->in, p->param[0], t->labels, t->share,
                                err);
}

const struct layer_ops layer_lm_head = {
    .type = "lm_head",
    .about = "GPT-2's lm_head, tied to the embedding: ends a model of sequences with their cross entropy",
    .options = OPTIONS,
    .named = true,
    .elements = true,
    .plan = plan,
    .init = init,
    .loss = loss,
    .draws = draws,
};
