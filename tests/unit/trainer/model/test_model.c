/* test_model.c - shapes, names and memory of networks, and what they refuse. */
#include "test.h"

#include "common/cleanup.h"
#include "trainer/model/model.h"

#include <math.h>
#include <string.h>

/* Row i of layer_kinds by name. */
static const struct layer_ops *kind(const char *type)
{
    const char *names[LAYER_KINDS_MAX];
    int n = layer_kinds(names);

    for (int i = 0; i < n; i++)
        if (strcmp(names[i], type) == 0)
            return layer_kind(i);
    fail_msg("no kind of layer is called %s", type);
    return NULL;
}

static void add(struct model_spec *s, const char *type, const char *name, int64_t a, int64_t b)
{
    struct layer_spec *l = &s->layer[s->layers++];

    *l = layer_spec_of(kind(type), name);
    l->place = s->layers - 1;
    if (l->ops->options[0].key && l->ops->options[0].type == SPEC_INTEGER)
        l->option[0] = a;
    if (l->ops->options[0].key && l->ops->options[1].key && l->ops->options[1].type == SPEC_INTEGER)
        l->option[1] = b;
}

static struct model_spec input(int rows, int cols, int channels)
{
    return (struct model_spec){.input = {.rows = rows, .cols = cols, .channels = channels}};
}

static struct model_spec cnn(void)
{
    struct model_spec s = input(28, 28, 1);

    add(&s, "conv2d", "conv1", 32, 3);
    add(&s, "relu", "", 0, 0);
    add(&s, "maxpool2d", "", 2, 0);
    add(&s, "conv2d", "conv2", 64, 3);
    add(&s, "relu", "", 0, 0);
    add(&s, "maxpool2d", "", 2, 0);
    add(&s, "conv2d", "conv3", 64, 3);
    add(&s, "relu", "", 0, 0);
    add(&s, "flatten", "", 0, 0);
    add(&s, "linear", "dense1", 64, 0);
    add(&s, "relu", "", 0, 0);
    add(&s, "linear", "dense2", 10, 0);
    add(&s, "softmax", "", 0, 0);
    return s;
}

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
    struct model_spec s = cnn();
    struct err err;
    cleanup_model struct model *m = model_make(&s, 4, &err);
    int rows;

    assert_non_null(m);
    assert_int_equal(model_len(m), 93322);
    const struct param_row *row = model_params(m, &rows);
    assert_int_equal(rows, ARRAY_LEN(want));
    for (int i = 0; i < rows; i++) {
        assert_string_equal(row[i].name, want[i].name);
        assert_int_equal(row[i].offset, want[i].offset);
        assert_int_equal(row[i].len, want[i].len);
    }
    assert_int_equal(row[2].dims, 4);
    assert_int_equal(row[2].dim[1], 32);
    assert_int_equal(row[6].dim[1], 576);
    assert_int_equal(model_output(m).channels, 10);
    assert_int_equal((uintptr_t)model_values(m) % 64, 0);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct model_spec s[9];
    static const char *const says[] = {
        "model.layers[1] (linear b): expected a vector as input, got an image of 26x26x4: put flatten before",
        "model.layers[1] (conv2d b): expected an image as input, got a vector",
        "model.layers[0] (conv2d a): ",
        "model.layers[0] (maxpool2d): ",
        "model: the output is an image of 26x26x4, expected a vector",
        "model: no layer has parameters: nothing to train",
        "model.layers[1] (softmax): expected a vector as input, got an image of 26x26x4",
        "model.layers[1] (maxpool2d): expected an image as input, got a vector",
        "model.layers[1] (embedding b): expected tokens as input: put it first",
    };

    for (size_t i = 0; i < ARRAY_LEN(s); i++)
        s[i] = input(28, 28, 1);
    add(&s[0], "conv2d", "a", 4, 3);
    add(&s[0], "linear", "b", 4, 0);
    add(&s[1], "flatten", "", 0, 0);
    add(&s[1], "conv2d", "b", 4, 3);
    add(&s[2], "conv2d", "a", 4, 29);
    s[3].input.rows = 2;
    add(&s[3], "maxpool2d", "", 3, 0);
    add(&s[4], "conv2d", "a", 4, 3);
    add(&s[5], "flatten", "", 0, 0);
    add(&s[6], "conv2d", "a", 4, 3);
    add(&s[6], "softmax", "", 0, 0);
    add(&s[7], "flatten", "", 0, 0);
    add(&s[7], "maxpool2d", "", 2, 0);
    s[8].input = (struct shape){.rows = 4, .cols = 1, .channels = 1, .sequence = true};
    add(&s[8], "embedding", "a", 7, 1); /* what it gives is as wide as tokens, and is none */
    add(&s[8], "embedding", "b", 7, 8);
    for (size_t i = 0; i < ARRAY_LEN(s); i++) {
        struct err err = {0};
        cleanup_model struct model *m = model_make(&s[i], 2, &err);
        assert_null(m);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, says[i]))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, says[i]);
    }
}

/* A batch smaller than the largest gives the same rows. */
static void a_smaller_batch_is_the_same(void **state)
{
    (void)state;
    struct model_spec s = cnn();
    struct err err;
    struct torch_rng g;
    cleanup_model struct model *m = model_make(&s, 8, &err);
    cleanup_kctx struct kctx *ctx = NULL;
    cleanup_free float *x = calloc(8 * 784, sizeof(float));
    float all[80];

    assert_non_null(m);
    ctx = kctx_make(&(struct kctx_options){.workspace_bytes = model_workspace_bytes(m, 1)}, &err);
    assert_non_null(ctx);
    torch_rng_seed(&g, 1);
    model_init(m, &g);
    torch_rng_uniform(&g, -1, 1, x, 8 * 784);
    memcpy(all, model_forward(m, ctx, x, 8, NULL), sizeof(all));
    for (int i = 0; i < 8; i++) {
        const float *one = model_forward(m, ctx, x + i * 784, 1, NULL);
        for (int c = 0; c < 10; c++)
            assert_true(fabsf(one[c] - all[i * 10 + c]) <= 1e-6f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lays_out_parameters),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(a_smaller_batch_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
