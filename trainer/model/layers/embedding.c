/* embedding.c - {type: embedding, name, vocab, width}: nanoGPT's wte and wpe: a vector for each token plus
 * one for its position in the sequence. */
#include "trainer/model/layer.h"

#include "kernels/ops.h"

enum { VOCAB, WIDTH };
enum { TABLE, POSITIONS };

static const struct spec_option OPTIONS[] = {
    [VOCAB] = {"vocab", SPEC_INTEGER, 1, EMBEDDING_VOCAB_MAX, .required = true},
    [WIDTH] = {"width", SPEC_INTEGER, 1, 1 << 20, .required = true},
    {0},
};

static struct embedding_shape shape_of(const struct layer *l, int batch)
{
    return (struct embedding_shape){.batch = batch,
                                    .time = l->in.rows,
                                    .vocab = (int)l->spec->option[VOCAB],
                                    .channels = (int)l->spec->option[WIDTH]};
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    struct embedding_shape s = shape_of(l, batch_max);

    if (l->spec->place || !l->in.sequence || l->in.channels != 1)
        return err_set(err, ERR_INVALID,
                       "expected tokens as input: put it first, behind input: {tokens: ...}");
    if (embedding_check(&s, err))
        return -1;
    l->out = (struct shape){.rows = s.time, .cols = 1, .channels = s.channels, .sequence = true};
    l->params = 2;
    l->param[TABLE] = (struct layer_param){"wte.weight", 2, {s.vocab, s.channels}};
    l->param[POSITIONS] = (struct layer_param){"wpe.weight", 2, {s.time, s.channels}};
    return 0;
}

static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    torch_rng_normal(g, 0, 0.02, param[TABLE], layer_param_len(&l->param[TABLE]));
    torch_rng_normal(g, 0, 0.02, param[POSITIONS], layer_param_len(&l->param[POSITIONS]));
}

/* The words of nn.Embedding's own weights. */
static uint64_t draws(const struct layer *l)
{
    return torch_rng_normal_words(layer_param_len(&l->param[TABLE])) +
           torch_rng_normal_words(layer_param_len(&l->param[POSITIONS]));
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct embedding_shape s = shape_of(l, p->batch);

    ctx->ops->embedding_forward(ctx, &s, p->out, p->in, p->param[TABLE], p->param[POSITIONS]);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct embedding_shape s = shape_of(l, p->batch);

    ctx->ops->embedding_backward(ctx, &s, p->add[TABLE], p->grad[TABLE], p->grad[POSITIONS], p->dout, p->in);
}

const struct layer_ops layer_embedding = {
    .type = "embedding",
    .about = "a vector for each token, plus one for its place in the sequence: GPT-2's wte and wpe",
    .options = OPTIONS,
    .named = true,
    .elements = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
    .draws = draws,
};
