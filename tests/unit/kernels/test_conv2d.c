/* test_conv2d.c - convolution against a plain f64 one, over odd shapes, every instruction set and thread count. */
#include "check.h"
#include "kernels/ops.h"

#include <string.h>

struct reference {
    double *out, *din, *dweight, *dbias;
};

static size_t n_in(const struct conv2d_shape *s)
{
    return (size_t)s->batch * (size_t)s->in_h * (size_t)s->in_w * (size_t)s->in_c;
}
static size_t n_out(const struct conv2d_shape *s)
{
    return (size_t)s->batch * (size_t)conv2d_out_h(s) * (size_t)conv2d_out_w(s) * (size_t)s->out_c;
}
static size_t n_weight(const struct conv2d_shape *s)
{
    return (size_t)s->out_c * (size_t)s->in_c * (size_t)s->k_h * (size_t)s->k_w;
}

/* Calls visit for every product of the convolution, with its places in out, in and weight. */
static void each_product(const struct conv2d_shape *s, void (*visit)(void *, size_t, size_t, size_t),
                         void *arg)
{
    int oh = conv2d_out_h(s), ow = conv2d_out_w(s);
    for (int i = 0; i < s->batch * oh * ow * s->out_c; i++) {
        int o = i % s->out_c, x = i / s->out_c % ow, y = i / s->out_c / ow % oh, b = i / s->out_c / ow / oh;
        for (int j = 0; j < s->in_c * s->k_h * s->k_w; j++) {
            int kx = j % s->k_w, ky = j / s->k_w % s->k_h, c = j / s->k_w / s->k_h;
            int row = y * s->stride + ky * s->dilation - s->pad;
            int col = x * s->stride + kx * s->dilation - s->pad;
            if (row < 0 || row >= s->in_h || col < 0 || col >= s->in_w)
                continue;
            int in = ((b * s->in_h + row) * s->in_w + col) * s->in_c + c;
            int w = ((o * s->in_c + c) * s->k_h + ky) * s->k_w + kx;
            visit(arg, (size_t)i, (size_t)in, (size_t)w);
        }
    }
}

struct data {
    struct reference r;
    const float *in, *weight, *dout, *out;
};

static void forward_product(void *arg, size_t out, size_t in, size_t w)
{
    struct data *d = arg;
    d->r.out[out] += (double)d->in[in] * (double)d->weight[w];
}

static void backward_product(void *arg, size_t out, size_t in, size_t w)
{
    struct data *d = arg;
    double dy = d->out && !(d->out[out] > 0) ? 0 : (double)d->dout[out];
    d->r.din[in] += dy * (double)d->weight[w];
    d->r.dweight[w] += dy * (double)d->in[in];
}

static void check_shape(const struct conv2d_shape *s, enum kctx_isa isa, int threads, bool relu, bool bias)
{
    struct err err = {0};
    struct guards g = {.seed = 7};
    assert_int_equal(conv2d_check(s, &err), 0);
    struct kctx *ctx = make_ctx(isa, threads, conv2d_workspace_bytes(s));
    float *in = guards_random(&g, n_in(s)), *weight = guards_random(&g, n_weight(s));
    float *b = guards_random(&g, (size_t)s->out_c), *dout = guards_random(&g, n_out(s));
    float *out = guards_floats(&g, n_out(s)), *din = guards_floats(&g, n_in(s));
    float *dweight = guards_floats(&g, n_weight(s)), *dbias = guards_floats(&g, (size_t)s->out_c);
    struct data d = {{doubles(n_out(s)), doubles(n_in(s)), doubles(n_weight(s)), doubles((size_t)s->out_c)},
                     in,
                     weight,
                     dout,
                     relu ? out : NULL};

    ctx->ops->conv2d_forward(ctx, s, out, in, weight, bias ? b : NULL, relu);
    each_product(s, forward_product, &d);
    for (size_t i = 0; i < n_out(s); i++) {
        d.r.out[i] += bias ? (double)b[i % (size_t)s->out_c] : 0;
        d.r.out[i] = relu && d.r.out[i] < 0 ? 0 : d.r.out[i];
    }
    assert_close(out, d.r.out, n_out(s));

    poison_scratch(ctx);
    ctx->ops->conv2d_backward(ctx, s, din, dweight, dbias, dout, d.out, in, weight);
    each_product(s, backward_product, &d);
    for (size_t i = 0; i < n_out(s); i++)
        d.r.dbias[i % (size_t)s->out_c] += relu && !(out[i] > 0) ? 0 : (double)dout[i];
    assert_close(din, d.r.din, n_in(s));
    assert_close(dweight, d.r.dweight, n_weight(s));
    assert_close(dbias, d.r.dbias, (size_t)s->out_c);

    /* A first layer has no input gradient; the rest must come out the same. */
    float *dweight2 = guards_floats(&g, n_weight(s));
    poison_scratch(ctx);
    ctx->ops->conv2d_backward(ctx, s, NULL, dweight2, NULL, dout, d.out, in, weight);
    assert_same_bits(dweight, dweight2, n_weight(s) * sizeof *dweight);

    free(d.r.out);
    free(d.r.din);
    free(d.r.dweight);
    free(d.r.dbias);
    kctx_free(ctx);
    guards_release(&g);
}

static const struct conv2d_shape shapes[] = {
    /* batch, h, w, c, out, k_h, k_w, stride, pad, dilation */
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 1},   {2, 28, 28, 1, 32, 3, 3, 1, 0, 1}, {3, 13, 13, 32, 64, 3, 3, 1, 0, 1},
    {9, 5, 5, 64, 64, 3, 3, 1, 0, 1}, {2, 28, 28, 3, 32, 5, 5, 1, 0, 1}, {1, 4, 9, 5, 7, 3, 2, 1, 0, 1},
    {3, 7, 5, 17, 33, 1, 4, 1, 0, 1}, {2, 6, 6, 31, 65, 6, 6, 1, 0, 1},  {5, 3, 3, 2, 16, 3, 3, 1, 0, 1},
    {1, 2, 300, 3, 9, 2, 7, 1, 0, 1}, {2, 3, 200, 4, 8, 1, 1, 1, 0, 1},  {1, 9, 9, 70, 12, 3, 3, 1, 0, 1},
    {2, 9, 7, 3, 5, 3, 3, 2, 0, 1},   {2, 9, 8, 3, 33, 3, 3, 1, 1, 1},   {1, 11, 12, 4, 6, 5, 3, 3, 2, 1},
    {2, 9, 9, 5, 17, 3, 3, 1, 0, 2},  {1, 10, 13, 3, 8, 3, 2, 2, 3, 3},  {2, 5, 6, 2, 4, 1, 1, 4, 0, 1},
    {1, 1, 1, 2, 3, 3, 3, 1, 1, 1},   {1, 4, 4, 1, 1, 2, 2, 5, 7, 2},    {3, 6, 200, 2, 3, 3, 9, 2, 4, 1},
};

static void test_against_f64(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            check_shape(&shapes[i], isa, 1, false, true);
            check_shape(&shapes[i], isa, 1, true, true);
            check_shape(&shapes[i], isa, 3, true, false);
        }
    }
}

static void test_same_bits_at_any_thread_count(void **state)
{
    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
            const struct conv2d_shape *s = &shapes[i];
            struct guards g = {.seed = 3};
            float *in = guards_random(&g, n_in(s)), *weight = guards_random(&g, n_weight(s));
            float *bias = guards_random(&g, (size_t)s->out_c), *dout = guards_random(&g, n_out(s));
            float *first[4] = {0};
            for (int threads = 1; threads <= 5; threads += 2) {
                float *got[] = {guards_floats(&g, n_out(s)), guards_floats(&g, n_in(s)),
                                guards_floats(&g, n_weight(s)), guards_floats(&g, (size_t)s->out_c)};
                size_t n[] = {n_out(s), n_in(s), n_weight(s), (size_t)s->out_c};
                struct kctx *ctx = make_ctx(isa, threads, conv2d_workspace_bytes(s));
                ctx->ops->conv2d_forward(ctx, s, got[0], in, weight, bias, true);
                poison_scratch(ctx);
                ctx->ops->conv2d_backward(ctx, s, got[1], got[2], got[3], dout, got[0], in, weight);
                kctx_free(ctx);
                for (int k = 0; k < 4; k++) {
                    if (first[k])
                        assert_same_bits(first[k], got[k], n[k] * sizeof(float));
                    else
                        first[k] = got[k];
                }
            }
            guards_release(&g);
        }
    }
}

static void test_nan_survives_the_relu(void **state)
{
    const struct conv2d_shape s = {1, 3, 3, 1, 5, 3, 3, 1, 0, 1};

    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        struct guards g = {.seed = 1};
        struct kctx *ctx = make_ctx(isa, 1, conv2d_workspace_bytes(&s));
        float *in = guards_random(&g, 9), *weight = guards_random(&g, 45), *out = guards_floats(&g, 5);
        memset(in + 4, 0xff, sizeof *in);
        memset(out, 0, 5 * sizeof *out);
        ctx->ops->conv2d_forward(ctx, &s, out, in, weight, NULL, true);
        for (int o = 0; o < 5; o++)
            assert_true(out[o] != out[o]);
        kctx_free(ctx);
        guards_release(&g);
    }
}

static void test_refuses_what_it_cannot_do(void **state)
{
    const struct {
        struct conv2d_shape s;
        const char *field;
    } bad[] = {
        {{0, 5, 5, 1, 1, 3, 3, 1, 0, 1}, "batch"},
        {{1, 0, 5, 1, 1, 3, 3, 1, 0, 1}, "input height"},
        {{1, 5, -1, 1, 1, 3, 3, 1, 0, 1}, "input width"},
        {{1, 5, 5, 0, 1, 3, 3, 1, 0, 1}, "input channels"},
        {{1, 5, 5, 1, 0, 3, 3, 1, 0, 1}, "output channels"},
        {{1, 5, 5, 1, 1, 6, 3, 1, 0, 1}, "kernel height"},
        {{1, 5, 5, 1, 1, 3, 0, 1, 0, 1}, "kernel width"},
        {{1, 5, 5, 1, 1, 3, 3, 0, 0, 1}, "stride"},
        {{1, 5, 5, 1, 1, 3, 3, 1, -1, 1}, "padding"},
        {{1, 5, 5, 1, 1, 3, 3, 1, 4097, 1}, "padding"},
        {{1, 5, 5, 1, 1, 3, 3, 1, 0, 0}, "dilation"},
        {{1, 5, 5, 1, 1, 3, 3, 1, 0, 3}, "dilated kernel height"},
        {{1, 9, 5, 1, 1, 3, 3, 1, 0, INT32_MAX}, "dilated kernel height"},
        {{1, 9, 5, 1, 1, 3, 3, 1, 0, 3}, "dilated kernel width"},
        {{1, 40000, 40000, 1, 1, 3, 3, 1, 4096, 1}, "input of"},
        {{2000000000, 5, 5, 1, 1, 3, 3, 1, 0, 1}, "input of 2000000000"},
        {{1, 60000, 60000, 1, 1, 3, 3, 1, 0, 1}, "input of"},
        {{1, 4000, 4000, 1, 1000, 3, 3, 1, 0, 1}, "output of"},
        {{1, 3, 3, 100000, 100000, 3, 3, 1, 0, 1}, "weight of"},
        {{1, 3, 3, 1, INT32_MAX, 3, 3, 1, 0, 1}, "channels"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        assert_int_equal(conv2d_check(&bad[i].s, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, bad[i].field));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_f64),
        cmocka_unit_test(test_same_bits_at_any_thread_count),
        cmocka_unit_test(test_nan_survives_the_relu),
        cmocka_unit_test(test_refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
