/* test_layers.c - every kind of layer beside PyTorch: start weights, outputs, gradients, buffers, evaluation; and
 * what training passes and evaluations do differently. */
#include "test.h"

#include "../../../golden/torch/layers.h"
#include "common/arena.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "trainer/cli/config.h"
#include "trainer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { BATCH = GOLDEN_LAYERS_BATCH, INPUT_MAX = 1024 };

struct net {
    struct arena arena;
    struct config cfg;
    struct model *model;
    struct kctx *ctx;
    float x[BATCH * INPUT_MAX];
};

/* The rest of a preset around "input: ... layers: ...". */
static void open_net(struct net *n, const char *model, enum kctx_isa isa, int threads)
{
    char text[4096];
    struct err err = {0};

    snprintf(text, sizeof(text),
             "name: t\nloss: cross_entropy\noptimizer: {type: sgd, lr: 1}\ndata: {format: idx, train_items: "
             "1}\nmodel:\n  %s",
             model);
    memset(n, 0, sizeof(*n));
    if (config_decode("t.yaml", text, strlen(text), &n->arena, &n->cfg, &err))
        fail_msg("%s", err.msg);
    n->model = model_make(&n->cfg.model, BATCH + 1, &err);
    if (!n->model)
        fail_msg("%s", err.msg);
    struct kctx_options machine = {
        .isa = isa, .threads = threads, .workspace_bytes = model_workspace_bytes(n->model, threads)};
    n->ctx = kctx_make(&machine, &err);
    assert_non_null(n->ctx);
}

static void close_net(struct net *n)
{
    kctx_free(n->ctx);
    model_free(n->model);
    arena_release(&n->arena);
}

static void fill_input(struct net *n, int step)
{
    size_t len = BATCH * shape_len(&n->cfg.model.input);

    assert_true(len <= ARRAY_LEN(n->x));
    for (size_t i = 0; i < len; i++)
        n->x[i] = (float)((int)((i * 37 + (size_t)step * 11) % 101) - 50) / 32;
}

/* To the rounding of f32 sums: relative to the largest of them. */
static void assert_near(const char *what, const float *got, const float *want, size_t n)
{
    float most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 3e-6f * most))
            fail_msg("%s[%zu] is %.9g, torch has %.9g (of at most %g)", what, i, (double)got[i],
                     (double)want[i], (double)most);
}

static void assert_state(const struct golden_layers *g, const struct model *m)
{
    char keys[1024] = "";
    const float *want = g->buffers;
    const struct state_row *row = m->state;

    for (int i = 0; i < m->states; i++) {
        size_t len = strlen(keys);
        snprintf(keys + len, sizeof(keys) - len, "%s%s", i ? " " : "", row[i].name);
        if (!row[i].buffer)
            continue;
        if (row[i].type == STATE_I64) {
            assert_int_equal(row[i].dims, 0);
            assert_int_equal(row[i].bytes, 8);
            assert_true((float)*(const int64_t *)row[i].data == *want++);
            continue;
        }
        assert_int_equal(row[i].dims, 1);
        assert_int_equal(row[i].bytes, (size_t)row[i].dim[0] * sizeof(float));
        assert_near(row[i].name, row[i].data, want, (size_t)row[i].dim[0]);
        want += row[i].dim[0];
    }
    assert_string_equal(keys, g->keys);
}

/* Two training passes, the gradients of the second, then an evaluation. */
static void check_beside_torch(const struct golden_layers *g, enum kctx_isa isa, int threads)
{
    static const uint32_t samples[BATCH] = {0};
    const struct model_step step = {.samples = samples};
    struct torch_rng rng;
    struct net n;

    open_net(&n, g->model, isa, threads);
    torch_rng_seed(&rng, GOLDEN_LAYERS_SEED);
    model_init(n.model, &rng);
    size_t len = n.model->len;
    size_t out_len = BATCH * (size_t)model_output(n.model).channels;
    cleanup_free float *grad = calloc(len, sizeof(float));
    cleanup_free float *pull = calloc(out_len, sizeof(float));
    assert_int_equal(crc32(0, (const Bytef *)n.model->values, (uInt)(len * sizeof(float))), g->start);
    const struct param_row *row = n.model->row;
    for (int i = 0; i < n.model->rows; i++)
        for (size_t k = 0; k < row[i].len; k++)
            n.model->values[row[i].offset + k] += (float)((int)(k * 29 % 23) - 11) / 64;

    fill_input(&n, 0);
    model_forward(n.model, n.ctx, n.x, BATCH, &step);
    fill_input(&n, 1);
    assert_near("out", model_forward(n.model, n.ctx, n.x, BATCH, &step), g->out, out_len);
    for (size_t i = 0; i < out_len; i++)
        pull[i] = (float)((int)(i * 53 % 97) - 48) / 64;
    model_backward(n.model, n.ctx, pull, grad, NULL);
    /* A bias in front of a batch norm has a gradient of 0 and only rounding to show: judge it by its weight. */
    for (int i = 0; i < n.model->rows; i++) {
        bool bias = strstr(row[i].name, ".bias") && i > 0;
        size_t first = bias ? row[i - 1].offset : row[i].offset;
        size_t end = row[i].offset + row[i].len;
        assert_near(row[i].name, grad + first, g->grad + first, end - first);
    }
    assert_state(g, n.model);
    fill_input(&n, 2);
    assert_near("eval", model_forward(n.model, n.ctx, n.x, BATCH, NULL), g->eval, out_len);
    assert_state(g, n.model);
    close_net(&n);
}

static void layers_do_what_torch_does(void **state)
{
    (void)state;
    for (int isa = KCTX_ISA_PLAIN; isa <= KCTX_ISA_AVX512; isa++) {
        if (!kctx_isa_supported((enum kctx_isa)isa))
            continue;
        for (size_t i = 0; i < ARRAY_LEN(golden_layers); i++) {
            check_beside_torch(&golden_layers[i], (enum kctx_isa)isa, 1);
            check_beside_torch(&golden_layers[i], (enum kctx_isa)isa, 3);
        }
    }
}

static bool names_kind(const char *text, const char *kind)
{
    char forms[2][64];

    snprintf(forms[0], sizeof(forms[0]), "{type: %s", kind);
    snprintf(forms[1], sizeof(forms[1]), "- %s\n", kind);
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(text, forms[i]);
        const char *end = at ? at + strlen(forms[i]) : NULL;
        if (end && (i == 1 || *end == ',' || *end == '}'))
            return true;
    }
    return false;
}

/* A new kind needs a network in layers.py, or, as those of sequences, in test_gpt2.c. Dropout is there with p: 0 alone: its
 * draws are not torch's, so what it does with them is held against its definition (tests/unit/kernels/test_dropout.c). */
static void no_kind_is_left_out(void **state)
{
    (void)state;
    cleanup_buf struct buf gpt2 = BUF_INIT(1 << 20);
    struct err err = {0};

    assert_int_equal(fs_read(TK_SOURCE_DIR "/tests/unit/trainer/run/test_gpt2.c", &gpt2, &err), 0);
    for (int k = 0; layer_types[k]; k++) {
        bool found = names_kind(buf_str(&gpt2), layer_types[k]);
        for (size_t i = 0; i < ARRAY_LEN(golden_layers); i++)
            found = found || names_kind(golden_layers[i].model, layer_types[k]);
        if (!found)
            fail_msg("%s: held against PyTorch nowhere", layer_types[k]);
    }
}

static const char DROPOUT[] = "input: {rows: 4, cols: 4, channels: 1}\n"
                              "  layers:\n"
                              "    - flatten\n"
                              "    - {type: dropout, p: 0.25}\n"
                              "    - {type: linear, name: a, out: 64}\n"
                              "    - dropout\n"
                              "    - {type: linear, name: b, out: 3}\n";

/* Two layers of one network draw on their own: of both, a quarter is left. The gradient of a weight is 0 where its
 * input is gone. */
static void dropout_layers_differ(void **state)
{
    (void)state;
    static const char twice[] = "input: {rows: 16, cols: 16, channels: 1}\n"
                                "  layers: [flatten, dropout, dropout, {type: linear, name: a, out: 1}]\n";
    const uint32_t sample = 3;
    const float pull = 1;
    float grad[257];
    int left = 0;
    struct net n;

    open_net(&n, twice, KCTX_ISA_AUTO, 1);
    for (int i = 0; i < 256; i++)
        n.x[i] = 1;
    model_forward(n.model, n.ctx, n.x, 1, &(struct model_step){.samples = &sample});
    model_backward(n.model, n.ctx, &pull, grad, NULL);
    for (int i = 0; i < 256; i++)
        left += grad[i] > 0;
    assert_in_range(left, 64 - 6 * 7, 64 + 6 * 7); /* six deviations; one mask twice would leave 128 */
    close_net(&n);
}

/* An evaluation is the plain network, twice the same. */
static void dropout_rests_in_evaluations(void **state)
{
    (void)state;
    static const char plain[] = "input: {rows: 4, cols: 4, channels: 1}\n"
                                "  layers:\n"
                                "    - flatten\n"
                                "    - {type: linear, name: a, out: 64}\n"
                                "    - {type: linear, name: b, out: 3}\n";
    struct torch_rng rng;
    struct net n;
    struct net p;

    open_net(&n, DROPOUT, KCTX_ISA_AUTO, 1);
    open_net(&p, plain, KCTX_ISA_AUTO, 1);
    torch_rng_seed(&rng, 1);
    model_init(n.model, &rng);
    torch_rng_seed(&rng, 1);
    model_init(p.model, &rng);
    fill_input(&n, 0);
    fill_input(&p, 0);
    const float *a = model_forward(n.model, n.ctx, n.x, BATCH, NULL);
    const float *b = model_forward(p.model, p.ctx, p.x, BATCH, NULL);
    assert_memory_equal(a, b, BATCH * 3 * sizeof(float));
    float kept[BATCH * 3];
    memcpy(kept, a, sizeof(kept));
    const uint32_t samples[BATCH] = {1, 2, 3};
    a = model_forward(n.model, n.ctx, n.x, BATCH, &(struct model_step){.samples = samples});
    assert_true(memcmp(a, kept, sizeof(kept)) != 0);
    close_net(&n);
    close_net(&p);
}

/* All buffers are one piece: what broadcasting it carries over is all there is. */
static void buffers_travel_in_one_piece(void **state)
{
    (void)state;
    static const uint32_t samples[BATCH] = {0};
    const struct model_step step = {.samples = samples};
    struct torch_rng rng;
    struct net a;
    struct net b;
    float want[BATCH * 8];

    open_net(&a, golden_layers[3].model, KCTX_ISA_AUTO, 1);
    open_net(&b, golden_layers[3].model, KCTX_ISA_AUTO, 1);
    torch_rng_seed(&rng, 1);
    model_init(a.model, &rng);
    memcpy(b.model->values, a.model->values, a.model->len * sizeof(float));
    assert_int_equal(a.model->buffers_bytes, b.model->buffers_bytes);
    assert_true(a.model->buffers_bytes >= 7 * 4 * 2 + 8);
    fill_input(&a, 0);
    model_forward(a.model, a.ctx, a.x, BATCH, &step);
    size_t out = BATCH * (size_t)model_output(a.model).channels * sizeof(float);
    memcpy(want, model_forward(a.model, a.ctx, a.x, BATCH, NULL), out);
    fill_input(&b, 0);
    assert_true(memcmp(want, model_forward(b.model, b.ctx, b.x, BATCH, NULL), out) != 0);
    memcpy(b.model->buffers, a.model->buffers, a.model->buffers_bytes);
    assert_memory_equal(want, model_forward(b.model, b.ctx, b.x, BATCH, NULL), out);
    close_net(&a);
    close_net(&b);
}

/* A network's parameters, as the exports have them. */
static void lays_out_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset, len;
    } want[] = {
        {"conv1.weight", 0, 288},        {"conv1.bias", 288, 32},        {"conv2.weight", 320, 18432},
        {"conv2.bias", 18752, 64},       {"conv3.weight", 18816, 36864}, {"conv3.bias", 55680, 64},
        {"dense1.weight", 55744, 36864}, {"dense1.bias", 92608, 64},     {"dense2.weight", 92672, 640},
        {"dense2.bias", 93312, 10},
    };
    cleanup_arena struct arena a = {0};
    struct config cfg;
    struct err err;

    assert_int_equal(config_load("mnist-cnn", &a, &cfg, &err), 0);
    cleanup_model struct model *m = model_make(&cfg.model, 4, &err);
    assert_non_null(m);
    assert_int_equal(m->len, 93322);
    const struct param_row *row = m->row;
    assert_int_equal(m->rows, ARRAY_LEN(want));
    for (int i = 0; i < m->rows; i++) {
        assert_string_equal(row[i].name, want[i].name);
        assert_int_equal(row[i].offset, want[i].offset);
        assert_int_equal(row[i].len, want[i].len);
    }
    assert_int_equal(row[2].dims, 4);
    assert_int_equal(row[2].dim[1], 32);
    assert_int_equal(row[6].dim[1], 576);
    assert_int_equal(model_output(m).channels, 10);
    assert_int_equal((uintptr_t)m->values % 64, 0);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *input, *layers, *says; /* input NULL: an image of 6x6x2 */
    } cases[] = {
        {NULL, "[{type: conv2d, name: a, out: 4, kernel: 3}, {type: linear, name: b, out: 4}]",
         "model.layers[1] (linear b): expected a vector as input, got an image of 4x4x4: put flatten before"},
        {NULL, "[flatten, {type: conv2d, name: b, out: 4, kernel: 3}]",
         "model.layers[1] (conv2d b): expected an image as input, got a vector"},
        {NULL, "[{type: conv2d, name: a, out: 4, kernel: 7}]", "model.layers[0] (conv2d a): "},
        {NULL, "[{type: maxpool2d, size: 7}]", "model.layers[0] (maxpool2d): "},
        {NULL, "[{type: conv2d, name: a, out: 4, kernel: 3}]",
         "model: the output is an image of 4x4x4, expected a vector"},
        {NULL, "[flatten]", "model: no layer has parameters: nothing to train"},
        {NULL, "[softmax]", "model.layers[0] (softmax): expected a vector as input, got an image of 6x6x2"},
        {NULL, "[flatten, {type: maxpool2d, size: 2}]",
         "model.layers[1] (maxpool2d): expected an image as input, got a vector"},
        /* What the first gives is as wide as tokens, and is none. */
        {"{tokens: 4}",
         "[{type: embedding, name: a, vocab: 7, width: 1}, {type: embedding, name: b, vocab: 7, width: 8}]",
         "model.layers[1] (embedding b): expected tokens as input: put it first"},
        {NULL, "[{type: batchnorm1d, name: n}, flatten]",
         "model.layers[0] (batchnorm1d n): expected a vector as input, got an image: batchnorm2d takes it"},
        {NULL, "[flatten, {type: batchnorm2d, name: n}]",
         "model.layers[1] (batchnorm2d n): expected an image as input, got a vector: batchnorm1d takes it"},
        {NULL, "[{type: layernorm, name: n, elementwise_affine: false}]",
         "model.layers[0].elementwise_affine: unknown key"},
        {NULL, "[{type: maxpool2d, size: 2, count_include_pad: false}]",
         "model.layers[0].count_include_pad: unknown key"},
        {NULL, "[{type: conv2d, name: c, out: 1, kernel: 3, dilation: 3}]",
         "model.layers[0] (conv2d c): conv2d: dilated kernel height is 7, expected 1..6"},
        {NULL, "[{type: maxpool2d, size: 2, padding: 2}]",
         "model.layers[0] (maxpool2d): pool2d: padding is 2, expected 0..1"},
        {NULL, "[flatten, {type: avgpool2d, size: 2}]",
         "model.layers[1] (avgpool2d): expected an image as input, got a vector"},
        {NULL, "[flatten, {type: linear, name: l, out: 2, bias: 1}]",
         "model.layers[1].bias: expected true or false, got \"1\""},
        {NULL, "[{type: gelu, approximate: sigmoid}]",
         "model.layers[0].approximate: expected one of: none, tanh; got \"sigmoid\""},
        {NULL, "[{type: dropout, p: 1}]", "model.layers[0].p: expected a number 0..0.999, got \"1\""},
        {NULL, "[{type: batchnorm2d, name: n, momentum: -0.1}]",
         "model.layers[0].momentum: expected a number 0..1"},
        {NULL, "[{type: batchnorm2d}]", "model.layers[0].name: is required"},
        {NULL, "[{type: conv2d, name: c, out: 4, kernel: 3, groups: 2}]",
         "model.layers[0].groups: unknown key"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct config cfg;
        struct err err = {0};
        char text[1024];
        snprintf(text, sizeof(text),
                 "name: t\nloss: cross_entropy\noptimizer: {type: sgd, lr: 1}\ndata: {format: %s}\n"
                 "model: {input: %s, layers: %s}\n",
                 cases[i].input ? "tokens, train: x" : "idx, train_items: 1",
                 cases[i].input ? cases[i].input : "{rows: 6, cols: 6, channels: 2}", cases[i].layers);
        if (!config_decode("t.yaml", text, strlen(text), &a, &cfg, &err))
            assert_null(model_make(&cfg.model, 2, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_do_what_torch_does),   cmocka_unit_test(no_kind_is_left_out),
        cmocka_unit_test(dropout_layers_differ),       cmocka_unit_test(dropout_rests_in_evaluations),
        cmocka_unit_test(buffers_travel_in_one_piece), cmocka_unit_test(lays_out_parameters),
        cmocka_unit_test(refuses_what_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
