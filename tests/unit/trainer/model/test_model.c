/* test_model.c - shapes, names, memory, and gradients of whole networks against finite differences in f64. */
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
    if (l->ops->options[0].key && l->ops->options[0].type == LAYER_INTEGER)
        l->option[0] = a;
    if (l->ops->options[0].key && l->ops->options[1].key && l->ops->options[1].type == LAYER_INTEGER)
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
    struct model_spec s[8];
    static const char *const says[] = {
        "model.layers[1] (linear b): expected a vector as input, got an image of 26x26x4: put flatten before",
        "model.layers[1] (conv2d b): expected an image as input, got a vector",
        "model.layers[0] (conv2d a): ",
        "model.layers[0] (maxpool2d): ",
        "model: the output is an image of 26x26x4, expected a vector",
        "model: no layer has parameters: nothing to train",
        "model.layers[1] (softmax): expected a vector as input, got an image of 26x26x4",
        "model.layers[1] (maxpool2d): expected an image as input, got a vector",
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
    for (size_t i = 0; i < ARRAY_LEN(s); i++) {
        struct err err = {0};
        cleanup_model struct model *m = model_make(&s[i], 2, &err);
        assert_null(m);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, says[i]))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, says[i]);
    }
}

/* ---- the same networks in plain f64: the definition that the gradients are held against ---- */

enum { CELLS = 4096 };

struct reference {
    double value[CELLS];
    struct shape shape;
};

static double *cell(struct reference *r, int y, int x, int c)
{
    return &r->value[(y * r->shape.cols + x) * r->shape.channels + c];
}

static void ref_conv(const struct layer_spec *l, const double *w, struct reference *r, size_t *used)
{
    struct reference in = *r;
    int out = (int)l->option[0];
    int k = (int)l->option[1];
    const double *bias = w + out * in.shape.channels * k * k;

    r->shape = (struct shape){.rows = in.shape.rows - k + 1, .cols = in.shape.cols - k + 1, .channels = out};
    for (int y = 0; y < r->shape.rows; y++)
        for (int x = 0; x < r->shape.cols; x++)
            for (int o = 0; o < out; o++) {
                double sum = bias[o];
                for (int c = 0; c < in.shape.channels; c++)
                    for (int i = 0; i < k * k; i++)
                        sum +=
                            w[(o * in.shape.channels + c) * k * k + i] * *cell(&in, y + i / k, x + i % k, c);
                *cell(r, y, x, o) = sum;
            }
    *used += (size_t)(out * in.shape.channels * k * k + out);
}

static void ref_linear(const struct layer_spec *l, const double *w, struct reference *r, size_t *used)
{
    struct reference in = *r;
    int n = in.shape.channels;
    int out = (int)l->option[0];

    r->shape.channels = out;
    for (int o = 0; o < out; o++) {
        r->value[o] = w[out * n + o];
        for (int i = 0; i < n; i++)
            r->value[o] += w[o * n + i] * in.value[i];
    }
    *used += (size_t)(out * n + out);
}

static void ref_pool(const struct layer_spec *l, struct reference *r)
{
    struct reference in = *r;
    int k = (int)l->option[0];
    int stride = l->option[1] ? (int)l->option[1] : k;

    r->shape.rows = (in.shape.rows - k) / stride + 1;
    r->shape.cols = (in.shape.cols - k) / stride + 1;
    for (int y = 0; y < r->shape.rows; y++)
        for (int x = 0; x < r->shape.cols; x++)
            for (int c = 0; c < in.shape.channels; c++) {
                double best = -INFINITY;
                for (int i = 0; i < k * k; i++)
                    best = fmax(best, *cell(&in, y * stride + i / k, x * stride + i % k, c));
                *cell(r, y, x, c) = best;
            }
}

static void ref_flatten(struct reference *r)
{
    struct reference in = *r;
    int at = 0;

    r->shape = (struct shape){
        .rows = 1, .cols = 1, .channels = in.shape.rows * in.shape.cols * in.shape.channels, .flat = true};
    for (int c = 0; c < in.shape.channels; c++)
        for (int y = 0; y < in.shape.rows; y++)
            for (int x = 0; x < in.shape.cols; x++)
                r->value[at++] = *cell(&in, y, x, c);
}

static void ref_softmax(struct reference *r)
{
    double sum = 0;

    for (int i = 0; i < r->shape.channels; i++)
        sum += r->value[i] = exp(r->value[i]);
    for (int i = 0; i < r->shape.channels; i++)
        r->value[i] /= sum;
}

/* A function of the output whose gradient is `pull`. */
static double ref_objective(const struct model_spec *s, const double *w, const float *x, const float *pull)
{
    static struct reference r;
    size_t used = 0;
    double sum = 0;

    r.shape = s->input;
    for (size_t i = 0; i < shape_len(&s->input); i++)
        r.value[i] = (double)x[i];
    for (int i = 0; i < s->layers; i++) {
        const struct layer_spec *l = &s->layer[i];
        if (strcmp(l->ops->type, "conv2d") == 0)
            ref_conv(l, w + used, &r, &used);
        else if (strcmp(l->ops->type, "linear") == 0)
            ref_linear(l, w + used, &r, &used);
        else if (strcmp(l->ops->type, "maxpool2d") == 0)
            ref_pool(l, &r);
        else if (strcmp(l->ops->type, "flatten") == 0)
            ref_flatten(&r);
        else if (strcmp(l->ops->type, "softmax") == 0)
            ref_softmax(&r);
        else
            for (size_t k = 0; k < shape_len(&r.shape); k++)
                r.value[k] = fmax(r.value[k], 0);
    }
    for (int i = 0; i < r.shape.channels; i++)
        sum += r.value[i] * (double)pull[i];
    return sum;
}

/* Output and all gradients of one network on `batch` random samples. */
static void check_gradients(const struct model_spec *s, int batch, uint64_t seed)
{
    struct err err;
    struct torch_rng g;
    cleanup_model struct model *m = model_make(s, batch + 1, &err);
    cleanup_kctx struct kctx *ctx = NULL;

    assert_non_null(m);
    ctx = kctx_make(&(struct kctx_options){.workspace_bytes = model_workspace_bytes(m, 1)}, &err);
    assert_non_null(ctx);
    torch_rng_seed(&g, seed);
    model_init(m, &g);
    size_t n = model_len(m);
    size_t in_len = shape_len(&s->input);
    size_t out_len = (size_t)model_output(m).channels;
    cleanup_free float *x = calloc(in_len * (size_t)batch, sizeof(float));
    cleanup_free float *pull = calloc(out_len * (size_t)batch, sizeof(float));
    cleanup_free float *grad = calloc(n, sizeof(float));
    cleanup_free double *w = calloc(n, sizeof(double));
    torch_rng_uniform(&g, -1, 1, x, in_len * (size_t)batch);
    torch_rng_uniform(&g, -1, 1, pull, out_len * (size_t)batch);
    for (size_t i = 0; i < n; i++)
        w[i] = (double)model_values(m)[i];

    const float *out = model_forward(m, ctx, x, batch, NULL);
    double got = 0;
    double want = 0;
    for (int b = 0; b < batch; b++) {
        want += ref_objective(s, w, x + (size_t)b * in_len, pull + (size_t)b * out_len);
        for (size_t i = 0; i < out_len; i++)
            got += (double)out[(size_t)b * out_len + i] * (double)pull[(size_t)b * out_len + i];
    }
    assert_true(fabs(got - want) <= 1e-4 * (1 + fabs(want)));

    model_backward(m, ctx, pull, grad);
    double square = 0;
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        double h = 1e-6;
        double keep = w[i];
        double slope = 0;
        for (int b = 0; b < batch; b++) {
            w[i] = keep + h;
            slope += ref_objective(s, w, x + (size_t)b * in_len, pull + (size_t)b * out_len);
            w[i] = keep - h;
            slope -= ref_objective(s, w, x + (size_t)b * in_len, pull + (size_t)b * out_len);
        }
        w[i] = keep;
        slope /= 2 * h;
        square += slope * slope;
        error += (slope - (double)grad[i]) * (slope - (double)grad[i]);
    }
    assert_true(square > 0);
    if (!(sqrt(error / square) < 1e-4))
        fail_msg("gradients are off by %g of their norm", sqrt(error / square));
}

/* conv, ReLU behind a pool (its gradient is taken there), flatten that changes order, dense, softmax. */
static void gradients_of_a_small_cnn(void **state)
{
    (void)state;
    struct model_spec s = input(9, 8, 2);

    add(&s, "conv2d", "c1", 5, 3);
    add(&s, "relu", "", 0, 0);
    add(&s, "maxpool2d", "", 2, 0);
    add(&s, "conv2d", "c2", 3, 2);
    add(&s, "relu", "", 0, 0);
    add(&s, "flatten", "", 0, 0);
    add(&s, "linear", "d1", 7, 0);
    add(&s, "relu", "", 0, 0);
    add(&s, "linear", "d2", 4, 0);
    add(&s, "softmax", "", 0, 0);
    for (uint64_t seed = 1; seed <= 3; seed++)
        check_gradients(&s, 3, seed);
}

/* A ReLU that no layer can take over, pools that overlap, an alias in front, two ReLUs in a row. */
static void gradients_of_unusual_orders(void **state)
{
    (void)state;
    struct model_spec lone = input(7, 7, 1);
    struct model_spec mlp = input(4, 5, 1);

    add(&lone, "conv2d", "c1", 3, 2);
    add(&lone, "maxpool2d", "", 3, 1);
    add(&lone, "relu", "", 0, 0);
    add(&lone, "flatten", "", 0, 0);
    add(&lone, "linear", "d1", 3, 0);
    check_gradients(&lone, 2, 5);

    add(&mlp, "flatten", "", 0, 0);
    add(&mlp, "relu", "", 0, 0);
    add(&mlp, "linear", "d1", 6, 0);
    add(&mlp, "relu", "", 0, 0);
    add(&mlp, "relu", "", 0, 0);
    add(&mlp, "softmax", "", 0, 0);
    add(&mlp, "linear", "d2", 3, 0);
    check_gradients(&mlp, 4, 6);
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
        cmocka_unit_test(lays_out_parameters),         cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(gradients_of_a_small_cnn),    cmocka_unit_test(gradients_of_unusual_orders),
        cmocka_unit_test(a_smaller_batch_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
