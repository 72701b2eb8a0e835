/* gpt2_block.c - {type: gpt2_block, name, heads, blocks, recompute}: one transformer block of GPT-2.
 *
 *     x' = x + c_proj(attention(c_attn(ln_1(x))))      out = x' + c_proj(gelu(c_fc(ln_2(x'))))
 */
#include "trainer/model/gpt2.h"
#include "trainer/model/layer.h"

#include "kernels/ops.h"

#include <math.h>

enum { HEADS, BLOCKS, RECOMPUTE };

static const struct spec_option OPTIONS[] = {
    [HEADS] = {"heads", SPEC_INTEGER, 1, 1 << 16, .required = true},
    [BLOCKS] = {"blocks", SPEC_INTEGER, 1, 1 << 16, .fallback = 1},
    [RECOMPUTE] = {"recompute", SPEC_FLAG, .fallback = 0},
    {0},
};

/* weight and bias each */
enum { LN_1 = 0, C_ATTN = 2, ATTN_PROJ = 4, LN_2 = 6, C_FC = 8, MLP_PROJ = 10, PARAMS = 12 };

/* The forward pass's data for the backward pass: elements first, then floats. */
struct kept {
    void *norm_1, *qkv, *heads, *middle, *norm_2, *fc, *gelu;
    float *mean_1, *rstd_1, *mean_2, *rstd_2, *lse;
};

/* Elements for `rows` positions. */
static size_t element_part(const struct layer *l, size_t rows)
{
    size_t bytes = (1 + 3 + 1 + 1 + 1 + 4 + 4) * (size_t)l->in.channels * rows * element_bytes(l->element);

    return (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

static size_t kept_bytes(const struct layer *l, size_t rows)
{
    return element_part(l, rows) + (4 + (size_t)l->spec->option[HEADS]) * rows * sizeof(float);
}

/* Scratch of the backward pass. */
static size_t work_bytes(const struct layer *l, size_t rows)
{
    return (4 + 1 + 1) * (size_t)l->in.channels * rows * element_bytes(l->element);
}

static struct kept kept_at(const struct layer *l, const struct layer_pass *p, void *at)
{
    size_t rows = (size_t)p->batch * (size_t)l->in.rows;
    size_t c = (size_t)l->in.channels * rows;
    struct kept k;

    k.norm_1 = at;
    k.qkv = layer_at(l, k.norm_1, c);
    k.heads = layer_at(l, k.qkv, 3 * c);
    k.middle = layer_at(l, k.heads, c);
    k.norm_2 = layer_at(l, k.middle, c);
    k.fc = layer_at(l, k.norm_2, c);
    k.gelu = layer_at(l, k.fc, 4 * c);
    k.mean_1 = (float *)(void *)((char *)at + element_part(l, rows));
    k.rstd_1 = k.mean_1 + rows;
    k.mean_2 = k.rstd_1 + rows;
    k.rstd_2 = k.mean_2 + rows;
    k.lse = k.rstd_2 + rows;
    return k;
}

static struct layernorm_shape norm_of(const struct layer *l, int batch)
{
    return (struct layernorm_shape){.rows = batch * l->in.rows, .channels = l->in.channels, .eps = GPT2_EPS};
}

static struct linear_shape linear_of(const struct layer *l, int batch, int in, int out)
{
    return (struct linear_shape){
        .rows = batch * l->in.rows, .in = in * l->in.channels, .out = out * l->in.channels};
}

static struct attention_shape attention_of(const struct layer *l, int batch)
{
    int heads = (int)l->spec->option[HEADS];

    return (struct attention_shape){
        .batch = batch, .time = l->in.rows, .heads = heads, .size = l->in.channels / heads};
}

/* Plan the matrix products, and the most scratch memory that one needs. */
static int plan_products(struct layer *l, int batch_max, struct err *err)
{
    const struct linear_shape all[] = {linear_of(l, batch_max, 1, 3), linear_of(l, batch_max, 1, 1),
                                       linear_of(l, batch_max, 1, 4), linear_of(l, batch_max, 4, 1)};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (linear_check(&all[i], err))
            return -1;
        size_t bytes = linear_workspace_bytes(&all[i]);
        if (bytes > l->workspace_bytes)
            l->workspace_bytes = bytes;
    }
    return 0;
}

static void plan_params(struct layer *l)
{
    static const struct {
        const char *weight, *bias;
        int in, out; /* in multiples of the width; in 0: a norm */
    } pair[PARAMS / 2] = {{"ln_1.weight", "ln_1.bias", 0, 1},
                          {"attn.c_attn.weight", "attn.c_attn.bias", 1, 3},
                          {"attn.c_proj.weight", "attn.c_proj.bias", 1, 1},
                          {"ln_2.weight", "ln_2.bias", 0, 1},
                          {"mlp.c_fc.weight", "mlp.c_fc.bias", 1, 4},
                          {"mlp.c_proj.weight", "mlp.c_proj.bias", 4, 1}};
    const int64_t c = l->in.channels;

    l->params = PARAMS;
    for (int i = 0; i < PARAMS / 2; i++) {
        l->param[2 * i] =
            (struct layer_param){pair[i].weight, pair[i].in ? 2 : 1, {pair[i].out * c, pair[i].in * c}};
        l->param[2 * i + 1] = (struct layer_param){pair[i].bias, 1, {pair[i].out * c}};
        l->f32[2 * i] = l->f32[2 * i + 1] = !pair[i].in;
        l->transposed[2 * i] = pair[i].in;
    }
}

static int plan(struct layer *l, int batch_max, struct err *err)
{
    int64_t heads = l->spec->option[HEADS];
    size_t rows = (size_t)l->in.rows;

    if (!l->in.sequence)
        return err_set(err, ERR_INVALID, "expected a sequence as input: put an embedding before");
    if (l->in.channels % heads)
        return err_set(err, ERR_INVALID, "heads: %lld, expected a divisor of the width (%d)",
                       (long long)heads, l->in.channels);
    struct layernorm_shape norm = norm_of(l, batch_max);
    struct attention_shape attention = attention_of(l, batch_max);
    if (l->in.channels > INT32_MAX / 4 || layernorm_check(&norm, err) || attention_check(&attention, err) ||
        plan_products(l, batch_max, err))
        return -1;
    plan_params(l);
    l->thread_bytes = attention_thread_bytes(&attention);
    l->scratch_bytes = work_bytes(l, rows);
    if (l->spec->option[RECOMPUTE])
        l->scratch_bytes += kept_bytes(l, rows);
    else
        l->saved_bytes = kept_bytes(l, rows);
    return 0;
}

/* Draw in the order of build-nanogpt's apply(). */
static void init(const struct layer *l, struct torch_rng *g, float *const *param)
{
    const double narrow =
        0.02 * pow(2.0 * (double)l->spec->option[BLOCKS], -0.5); /* projections into the residual stream */

    for (int i = 0; i < PARAMS; i++) {
        size_t n = layer_param_len(&l->param[i]);
        if (l->param[i].dims == 2)
            torch_rng_normal(g, 0, i == ATTN_PROJ || i == MLP_PROJ ? narrow : 0.02, param[i], n);
        else
            for (size_t k = 0; k < n; k++)
                param[i][k] = i == LN_1 || i == LN_2;
    }
}

/* The words of nn.Linear's own weights and biases. */
static uint64_t draws(const struct layer *l)
{
    uint64_t n = 0;

    for (int i = 0; i < PARAMS; i++)
        if (i / 2 != LN_1 / 2 && i / 2 != LN_2 / 2)
            n += layer_param_len(&l->param[i]);
    return n;
}

static struct kept kept_of(const struct layer *l, const struct layer_pass *p)
{
    size_t rows = (size_t)p->batch * (size_t)l->in.rows;

    return kept_at(l, p,
                   l->spec->option[RECOMPUTE] ? (char *)p->scratch + work_bytes(l, rows) : (void *)p->saved);
}

static size_t len_of(const struct linear_shape *s)
{
    return (size_t)s->rows * (size_t)s->out;
}

/* Compute all but the last product, whose result the backward pass does not need. */
static void compute(const struct layer *l, struct kctx *ctx, const struct layer_pass *p, const struct kept *k)
{
    const void *const *w = p->param;
    struct layernorm_shape norm = norm_of(l, p->batch);
    struct attention_shape attention = attention_of(l, p->batch);
    struct linear_shape attn = linear_of(l, p->batch, 1, 3);
    struct linear_shape proj = linear_of(l, p->batch, 1, 1);
    struct linear_shape fc = linear_of(l, p->batch, 1, 4);

    ctx->ops->layernorm_forward(ctx, &norm, k->norm_1, k->mean_1, k->rstd_1, p->in, w[LN_1], w[LN_1 + 1]);
    ctx->ops->linear_forward(ctx, &attn, k->qkv, k->norm_1, w[C_ATTN], w[C_ATTN + 1], false);
    ctx->ops->attention_forward(ctx, &attention, k->heads, k->lse, k->qkv);
    ctx->ops->linear_forward(ctx, &proj, k->norm_2, k->heads, w[ATTN_PROJ], w[ATTN_PROJ + 1], false);
    ctx->ops->add(ctx, k->middle, p->in, k->norm_2, len_of(&proj));
    ctx->ops->layernorm_forward(ctx, &norm, k->norm_2, k->mean_2, k->rstd_2, k->middle, w[LN_2], w[LN_2 + 1]);
    ctx->ops->linear_gelu_forward(ctx, &fc, k->gelu, k->fc, k->norm_2, w[C_FC], w[C_FC + 1]);
}

static void forward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    struct linear_shape proj = linear_of(l, p->batch, 4, 1);
    struct kept k = kept_of(l, p);
    void *last = p->scratch;

    compute(l, ctx, p, &k);
    ctx->ops->linear_forward(ctx, &proj, last, k.gelu, p->param[MLP_PROJ], p->param[MLP_PROJ + 1], false);
    ctx->ops->add(ctx, p->out, k.middle, last, len_of(&proj));
}

/* Backward from the block's output to x', whose gradient goes to `middle`. */
static void backward_mlp(const struct layer *l, struct kctx *ctx, const struct layer_pass *p,
                         const struct kept *k, void *wide, void *narrow, void *middle)
{
    const void *const *w = p->param;
    struct layernorm_shape norm = norm_of(l, p->batch);
    struct linear_shape fc = linear_of(l, p->batch, 1, 4);
    struct linear_shape proj = linear_of(l, p->batch, 4, 1);
    void *dfc = k->gelu; /* the activation is not needed any more */

    ctx->ops->gelu_linear_backward(ctx, &proj, dfc, wide, p->grad[MLP_PROJ], p->grad[MLP_PROJ + 1], p->dout,
                                   k->gelu, k->fc, w[MLP_PROJ]);
    ctx->ops->linear_backward(ctx, &fc, narrow, p->grad[C_FC], p->grad[C_FC + 1], dfc, NULL, k->norm_2,
                              w[C_FC]);
    ctx->ops->layernorm_backward(ctx, &norm, middle, p->grad[LN_2], p->grad[LN_2 + 1], narrow, p->dout,
                                 k->middle, k->mean_2, k->rstd_2, w[LN_2]);
}

static void backward(const struct layer *l, struct kctx *ctx, const struct layer_pass *p)
{
    const void *const *w = p->param;
    struct layernorm_shape norm = norm_of(l, p->batch);
    struct attention_shape attention = attention_of(l, p->batch);
    struct linear_shape attn = linear_of(l, p->batch, 1, 3);
    struct linear_shape proj = linear_of(l, p->batch, 1, 1);
    struct kept k = kept_of(l, p);
    size_t c = len_of(&proj);
    void *wide = p->scratch;
    void *narrow = layer_at(l, wide, 4 * c);
    void *middle = layer_at(l, narrow, c);

    if (l->spec->option[RECOMPUTE])
        compute(l, ctx, p, &k);
    backward_mlp(l, ctx, p, &k, wide, narrow, middle);
    ctx->ops->linear_backward(ctx, &proj, narrow, p->grad[ATTN_PROJ], p->grad[ATTN_PROJ + 1], middle, NULL,
                              k.heads, w[ATTN_PROJ]);
    ctx->ops->attention_backward(ctx, &attention, wide, narrow, k.heads, k.lse, k.qkv);
    ctx->ops->linear_backward(ctx, &attn, narrow, p->grad[C_ATTN], p->grad[C_ATTN + 1], wide, NULL, k.norm_1,
                              w[C_ATTN]);
    ctx->ops->layernorm_backward(ctx, &norm, p->din, p->grad[LN_1], p->grad[LN_1 + 1], narrow, middle, p->in,
                                 k.mean_1, k.rstd_1, w[LN_1]);
}

const struct layer_ops layer_gpt2_block = {
    .type = "gpt2_block",
    .about = "a transformer block of GPT-2: causal attention and an MLP of four times the width, both in the "
             "residual "
             "stream. blocks: how many the model has, for the initial weights; recompute: keep nothing for "
             "the backward "
             "pass but the input",
    .options = OPTIONS,
    .named = true,
    .elements = true,
    .plan = plan,
    .init = init,
    .forward = forward,
    .backward = backward,
    .draws = draws,
};
