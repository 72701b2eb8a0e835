/* test_linear.c - the fully connected layer against f64, over odd shapes, every instruction set and thread count. */
#include "check.h"
#include "kernels/ops.h"

#include <string.h>

static const struct linear_shape shapes[] = {
    {1, 1, 1},   {32, 784, 512}, {32, 576, 64},  {32, 64, 10}, {32, 20, 1},    {7, 33, 5},   {13, 100, 3},
    {1, 31, 65}, {25, 16, 12},   {2, 15, 13},    {400, 8, 10}, {5, 1, 40},     {12, 96, 96}, {3, 512, 17},
    {65, 1, 1},  {70, 33, 50},   {250, 300, 40}, {520, 17, 9}, {66, 700, 130},
};

/* Everything the layer computes, in f32 and in f64. */
struct run {
    float *in, *weight, *bias, *dout;   /* given */
    float *out, *din, *dweight, *dbias; /* computed */
    size_t n_in, n_weight, n_out, n_bias;
};

static struct run make_run(struct guards *g, const struct linear_shape *s)
{
    struct run r = {.n_in = (size_t)(s->rows * s->in),
                    .n_weight = (size_t)(s->out * s->in),
                    .n_out = (size_t)(s->rows * s->out),
                    .n_bias = (size_t)s->out};
    r.in = guards_random(g, r.n_in);
    r.weight = guards_random(g, r.n_weight);
    r.bias = guards_random(g, r.n_bias);
    r.dout = guards_random(g, r.n_out);
    r.out = guards_floats(g, r.n_out);
    r.din = guards_floats(g, r.n_in);
    r.dweight = guards_floats(g, r.n_weight);
    r.dbias = guards_floats(g, r.n_bias);
    return r;
}

static void compute(struct run *r, const struct linear_shape *s, enum kctx_isa isa, int threads, bool relu,
                    bool bias)
{
    struct kctx *ctx = make_ctx(isa, threads, linear_workspace_bytes(s));
    ctx->ops->linear_forward(ctx, s, r->out, r->in, r->weight, bias ? r->bias : NULL, relu);
    poison_scratch(ctx);
    ctx->ops->linear_backward(ctx, s, r->din, r->dweight, r->dbias, r->dout, relu ? r->out : NULL, r->in,
                              r->weight);
    kctx_free(ctx);
}

static void check_forward(const struct run *r, const struct linear_shape *s, bool relu, bool bias)
{
    double *want = doubles(r->n_out);
    for (int i = 0; i < s->rows * s->out; i++) {
        int row = i / s->out, o = i % s->out;
        double v = bias ? (double)r->bias[o] : 0;
        for (int k = 0; k < s->in; k++)
            v += (double)r->in[row * s->in + k] * (double)r->weight[o * s->in + k];
        want[i] = relu && v < 0 ? 0 : v;
    }
    assert_close(r->out, want, r->n_out);
    free(want);
}

static void check_backward(const struct run *r, const struct linear_shape *s, bool relu)
{
    double *din = doubles(r->n_in), *dweight = doubles(r->n_weight), *dbias = doubles(r->n_bias);
    for (int i = 0; i < s->rows * s->out; i++) {
        int row = i / s->out, o = i % s->out;
        double dy = relu && !(r->out[i] > 0) ? 0 : (double)r->dout[i];
        dbias[o] += dy;
        for (int k = 0; k < s->in; k++) {
            din[row * s->in + k] += dy * (double)r->weight[o * s->in + k];
            dweight[o * s->in + k] += dy * (double)r->in[row * s->in + k];
        }
    }
    assert_close(r->din, din, r->n_in);
    assert_close(r->dweight, dweight, r->n_weight);
    assert_close(r->dbias, dbias, r->n_bias);
    free(din);
    free(dweight);
    free(dbias);
}

static void test_against_f64(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            for (int variant = 0; variant < 4; variant++) {
                struct guards g = {.seed = 5};
                struct run r = make_run(&g, &shapes[i]);
                bool relu = variant & 1, bias = variant & 2;
                compute(&r, &shapes[i], isa, 1 + variant, relu, bias);
                check_forward(&r, &shapes[i], relu, bias);
                check_backward(&r, &shapes[i], relu);
                guards_release(&g);
            }
        }
    }
}

static void test_same_bits_at_any_thread_count(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            struct guards g = {.seed = 5}, h = {.seed = 5};
            struct run a = make_run(&g, &shapes[i]);
            compute(&a, &shapes[i], isa, 1, true, true);
            for (int threads = 2; threads <= 5; threads++) {
                struct run b = make_run(&h, &shapes[i]);
                compute(&b, &shapes[i], isa, threads, true, true);
                assert_same_bits(a.out, b.out, a.n_out * sizeof(float));
                assert_same_bits(a.din, b.din, a.n_in * sizeof(float));
                assert_same_bits(a.dweight, b.dweight, a.n_weight * sizeof(float));
                assert_same_bits(a.dbias, b.dbias, a.n_bias * sizeof(float));
                guards_release(&h);
                h.seed = 5;
            }
            guards_release(&g);
        }
    }
}

static void test_first_layer(void **state)
{
    const struct linear_shape s = {6, 19, 7};

    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        struct guards g = {.seed = 2};
        struct run r = make_run(&g, &s);
        compute(&r, &s, isa, 1, true, true);
        float *dweight = guards_floats(&g, r.n_weight);
        struct kctx *ctx = make_ctx(isa, 1, linear_workspace_bytes(&s));
        ctx->ops->linear_backward(ctx, &s, NULL, dweight, NULL, r.dout, r.out, r.in, r.weight);
        assert_same_bits(dweight, r.dweight, r.n_weight * sizeof(float));
        kctx_free(ctx);
        guards_release(&g);
    }
}

static void test_nan_survives_the_relu(void **state)
{
    const struct linear_shape s = {2, 40, 9};

    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        struct guards g = {.seed = 2};
        struct run r = make_run(&g, &s);
        memset(r.in + 39, 0xff, sizeof *r.in); /* the last element of row 0 */
        memset(r.out, 0, r.n_out * sizeof *r.out);
        compute(&r, &s, isa, 1, true, true);
        for (int o = 0; o < 9; o++) {
            assert_true(r.out[o] != r.out[o]);
            assert_true(r.out[9 + o] >= 0);
        }
        guards_release(&g);
    }
}

static void test_refuses_what_it_cannot_do(void **state)
{
    const struct {
        struct linear_shape s;
        const char *field;
    } bad[] = {{{0, 1, 1}, "rows"},
               {{1, 0, 1}, "inputs"},
               {{1, 1, -5}, "outputs"},
               {{65536, 65536, 1}, "input of"},
               {{65536, 1, 65536}, "output of"},
               {{1, 65536, 65536}, "weight of"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        assert_int_equal(linear_check(&bad[i].s, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, bad[i].field));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_f64),
        cmocka_unit_test(test_same_bits_at_any_thread_count),
        cmocka_unit_test(test_first_layer),
        cmocka_unit_test(test_nan_survives_the_relu),
        cmocka_unit_test(test_refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
