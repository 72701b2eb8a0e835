/* test_gradients.c - the gradients of every kind of layer against finite differences of its own forward pass. What that computes is
 * held against PyTorch (test_layers.c, ../run/test_gpt2.c), and gradients there more closely.
 */
#include "test.h"

#include "common/arena.h"
#include "common/cleanup.h"
#include "kernels/ops.h"
#include "trainer/cli/config.h"
#include "trainer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, SEED = 5 };

/* Of a parameter, for its slope: a longer step meets more of the kinks of ReLUs and pools, a shorter one more rounding. */
static const float STEP = 0x1p-10f;
static const double CLOSE = 0.02, NOISE = 0.001;

/* In each the layers in question stand behind one with parameters, whose gradient is theirs of their input. */
static const char *const NETWORKS[] = {
    /* a ReLU whose gradient the pool takes, flatten that changes order */
    "input: {rows: 9, cols: 8, channels: 2}\n"
    "  layers:\n"
    "    - {type: conv2d, name: a, out: 5, kernel: 3}\n"
    "    - relu\n"
    "    - {type: maxpool2d, size: 2}\n"
    "    - {type: conv2d, name: b, out: 3, kernel: 2}\n"
    "    - relu\n"
    "    - flatten\n"
    "    - {type: linear, name: c, out: 7}\n"
    "    - relu\n"
    "    - {type: linear, name: d, out: 4}\n"
    "    - softmax\n",
    /* a ReLU that no layer takes over, pools that overlap and reach out of the image */
    "input: {rows: 7, cols: 7, channels: 1}\n"
    "  layers:\n"
    "    - {type: conv2d, name: a, out: 3, kernel: 2}\n"
    "    - {type: maxpool2d, size: 3, stride: 1, padding: 1}\n"
    "    - relu\n"
    "    - flatten\n"
    "    - {type: linear, name: b, out: 3}\n",
    /* an alias and a ReLU in front, two ReLUs in a row, a softmax in the middle */
    "input: {rows: 4, cols: 5, channels: 1}\n"
    "  layers:\n"
    "    - flatten\n"
    "    - relu\n"
    "    - {type: linear, name: a, out: 6}\n"
    "    - relu\n"
    "    - relu\n"
    "    - softmax\n"
    "    - {type: linear, name: b, out: 3, bias: false}\n",
    "input: {rows: 10, cols: 9, channels: 2}\n"
    "  layers:\n"
    "    - {type: conv2d, name: a, out: 4, kernel: 3, stride: 2, padding: 2, dilation: 2, bias: false}\n"
    "    - gelu\n"
    "    - {type: avgpool2d, size: 3, stride: 2, padding: 1}\n"
    "    - flatten\n"
    "    - {type: linear, name: b, out: 5}\n"
    "    - {type: gelu, approximate: tanh}\n"
    "    - {type: linear, name: c, out: 3}\n",
    "input: {rows: 6, cols: 5, channels: 2}\n"
    "  layers:\n"
    "    - {type: conv2d, name: a, out: 3, kernel: 3, padding: 1}\n"
    "    - {type: batchnorm2d, name: b, eps: 0.01, momentum: 0.3}\n"
    "    - relu\n"
    "    - {type: layernorm, name: c, eps: 0.001}\n"
    "    - {type: avgpool2d, size: 3, stride: 2, padding: 1, count_include_pad: false}\n"
    "    - {type: layernorm, name: d, bias: false}\n"
    "    - {type: dropout, p: 0.3}\n"
    "    - flatten\n"
    "    - {type: linear, name: e, out: 4}\n",
    "input: {features: 9}\n"
    "  layers:\n"
    "    - {type: linear, name: a, out: 8}\n"
    "    - {type: batchnorm1d, name: b, eps: 0.001, momentum: 0.2}\n"
    "    - gelu\n"
    "    - dropout\n"
    "    - {type: linear, name: c, out: 6}\n"
    "    - {type: layernorm, name: d}\n"
    "    - {type: linear, name: e, out: 2}\n",
    "input: {tokens: 5}\n"
    "  layers:\n"
    "    - {type: embedding, name: a, vocab: 7, width: 8}\n"
    "    - {type: gpt2_block, name: b, heads: 2, blocks: 2, recompute: true}\n"
    "    - {type: gpt2_block, name: c, heads: 4}\n"
    "    - {type: layernorm, name: d}\n"
    "    - {type: lm_head, name: e, vocab: 7}\n",
};

struct net {
    struct arena arena;
    struct config cfg;
    struct model *model;
    struct kctx *ctx;
    struct model_step step;
    float *x, *pull, *grad;
    int32_t *labels;
    size_t outputs; /* of the batch */
};

static void decode(struct net *n, const char *text)
{
    char whole[4096];
    struct err err = {0};

    snprintf(whole, sizeof(whole),
             "name: t\nloss: cross_entropy\noptimizer: {type: sgd, lr: 1}\ndata: {format: %s}\nmodel:\n  %s",
             strstr(text, "tokens:") ? "tokens, train: x" : "idx, train_items: 1", text);
    memset(n, 0, sizeof(*n));
    if (config_decode("t.yaml", whole, strlen(whole), &n->arena, &n->cfg, &err))
        fail_msg("%s", err.msg);
}

static void fill(struct net *n, struct torch_rng *g)
{
    const struct shape *in = &n->cfg.model.input, out = model_output(n->model);
    const size_t inputs = BATCH * shape_len(in), len = n->model->len;
    static const uint32_t samples[BATCH] = {4, 1, 9};

    n->step = (struct model_step){.seed = SEED, .step = 2, .samples = samples};
    n->outputs = BATCH * shape_len(&out);
    n->x = arena_array(&n->arena, inputs, float);
    n->pull = arena_array(&n->arena, n->outputs, float);
    n->grad = arena_array(&n->arena, len, float);
    n->labels = arena_array(&n->arena, n->outputs, int32_t);
    torch_rng_uniform(g, -1, 1, n->x, inputs);
    for (size_t i = 0; in->sequence && i < inputs; i++)
        n->x[i] = floorf((n->x[i] + 1) * 3.5f);
    torch_rng_uniform(g, -1, 1, n->pull, n->outputs);
    for (size_t i = 0; i < n->outputs; i++)
        n->labels[i] = (int32_t)(i * 5 % (size_t)out.channels);
    /* Norms begin at 1 and 0 and an embedding near 0: nothing must be so special. */
    torch_rng_uniform(g, -0.3, 0.3, n->grad, len);
    for (size_t i = 0; i < len; i++)
        n->model->values[i] += n->grad[i];
}

static void open_net(struct net *n, const char *text)
{
    struct torch_rng g;
    struct err err = {0};

    decode(n, text);
    n->model = model_make(&n->cfg.model, BATCH + 1, &err);
    if (!n->model)
        fail_msg("%s", err.msg);
    n->ctx = kctx_make(
        &(struct kctx_options){.workspace_bytes = model_workspace_bytes(n->model, 1), .threads = 1}, &err);
    assert_non_null(n->ctx);
    torch_rng_seed(&g, SEED);
    model_init(n->model, &g);
    fill(n, &g);
}

static void close_net(struct net *n)
{
    kctx_free(n->ctx);
    model_free(n->model);
    arena_release(&n->arena);
}

/* A number for the whole batch: of a head the mean cross entropy, else the outputs' product with `pull`. grad NULL: that alone. */
static double objective(struct net *n, float *grad)
{
    const float *out = model_forward(n->model, n->ctx, n->x, BATCH, &n->step);
    struct loss_result r;
    struct err err = {0};
    double sum = 0;

    if (!model_has_head(n->model)) {
        for (size_t i = 0; i < n->outputs; i++)
            sum += (double)out[i] * (double)n->pull[i];
        if (grad)
            model_backward(n->model, n->ctx, n->pull, grad, NULL);
        return sum;
    }
    const int rows = BATCH * model_output(n->model).rows;
    cleanup_free float *dout = calloc(BATCH * model_forward_len(n->model), sizeof(float));
    const struct head_target t = {.labels = n->labels, .share = 1.0f / (float)rows};
    assert_int_equal(model_head_loss(n->model, n->ctx, &t, grad ? dout : NULL, grad, &r, &err), 0);
    if (grad)
        model_backward(n->model, n->ctx, dout, grad, NULL);
    return r.sum / rows;
}

static double slope(struct net *n, size_t i)
{
    float *w = &n->model->values[i];
    const float keep = *w, above = keep + STEP, below = keep - STEP;

    *w = above;
    double up = objective(n, NULL);
    *w = below;
    double down = objective(n, NULL);
    *w = keep;
    return (up - down) / ((double)above - (double)below);
}

/* Each parameter by itself. One whose gradient is 0, such as a bias in front of a norm, has only rounding to show: the
 * norm of all gradients is the measure of that. */
static void check(const char *text)
{
    struct net n;

    open_net(&n, text);
    objective(&n, n.grad);
    const struct param_row *row = n.model->row;
    cleanup_free double *right = calloc(n.model->len, sizeof(double));
    double all = 0;
    for (size_t i = 0; i < n.model->len; i++) {
        right[i] = slope(&n, i);
        all += right[i] * right[i];
    }
    for (int k = 0; k < n.model->rows; k++) {
        double square = 0, error = 0;
        for (size_t i = row[k].offset; i < row[k].offset + row[k].len; i++) {
            square += right[i] * right[i];
            error += pow(right[i] - (double)n.grad[i], 2);
        }
        if (!(sqrt(error) <= CLOSE * sqrt(square) + NOISE * sqrt(all)))
            fail_msg("%s: off by %g, its norm is %g of %g:\n%s", row[k].name, sqrt(error), sqrt(square),
                     sqrt(all), text);
    }
    close_net(&n);
}

static void networks_have_the_gradients_of_their_definitions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(NETWORKS); i++)
        check(NETWORKS[i]);
}

/* Whether some model sets option `i` of this kind to another value than its default. */
static bool varied(const struct net *n, size_t networks, const struct layer_ops *ops, int i)
{
    const struct spec_option *o = &ops->options[i];

    for (size_t k = 0; k < networks; k++)
        for (int j = 0; j < n[k].cfg.model.layers; j++) {
            const struct layer_spec *l = &n[k].cfg.model.layer[j];
            const double value = o->type == SPEC_NUMBER ? l->number[i] : (double)l->option[i];
            if (l->ops == ops && (o->required || value != o->fallback))
                return true;
        }
    return false;
}

/* A new kind needs a network above, a new option one that uses it. */
static void no_kind_and_no_option_is_left_out(void **state)
{
    (void)state;
    static struct net nets[ARRAY_LEN(NETWORKS)];

    for (size_t i = 0; i < ARRAY_LEN(NETWORKS); i++)
        decode(&nets[i], NETWORKS[i]);
    for (int k = 0; layer_kinds[k]; k++) {
        const struct layer_ops *ops = layer_kinds[k];
        bool used = false;
        for (size_t i = 0; i < ARRAY_LEN(NETWORKS); i++)
            for (int j = 0; j < nets[i].cfg.model.layers; j++)
                used = used || nets[i].cfg.model.layer[j].ops == ops;
        if (!used)
            fail_msg("%s: in none of the networks of this file", ops->type);
        for (int i = 0; ops->options[i].key; i++)
            if (!varied(nets, ARRAY_LEN(NETWORKS), ops, i))
                fail_msg("%s: no network says anything about %s", ops->type, ops->options[i].key);
    }
    for (size_t i = 0; i < ARRAY_LEN(NETWORKS); i++)
        arena_release(&nets[i].arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_have_the_gradients_of_their_definitions),
        cmocka_unit_test(no_kind_and_no_option_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
