/* test_pool2d.c - pooling by comparison with plain loops: values, indices, ties, NaN, overlapping windows, padding. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

static const struct pool2d_shape shapes[] = {
    /* batch, h, w, c, window, stride, pad */
    {1, 1, 1, 1, 1, 1, 0, false},   {2, 26, 26, 32, 2, 2, 0, false}, {3, 11, 11, 64, 2, 2, 0, false},
    {2, 7, 5, 17, 2, 2, 0, false},  {1, 9, 8, 3, 3, 2, 0, false},    {2, 16, 15, 33, 15, 1, 0, false},
    {1, 10, 10, 5, 2, 3, 0, false}, {1, 5, 5, 1, 3, 1, 0, false},    {2, 24, 24, 32, 2, 2, 0, false},
    {2, 9, 8, 5, 3, 2, 1, false},   {1, 4, 6, 17, 2, 2, 1, false},   {2, 7, 7, 3, 5, 1, 2, false},
    {1, 1, 1, 2, 3, 1, 1, false},   {2, 8, 11, 33, 7, 4, 3, false},  {1, 6, 6, 2, 3, 3, 1, false},
};

static size_t n_in(const struct pool2d_shape *s)
{
    return (size_t)s->batch * (size_t)s->in_h * (size_t)s->in_w * (size_t)s->in_c;
}
static size_t n_out(const struct pool2d_shape *s)
{
    return (size_t)s->batch * (size_t)pool2d_out_h(s) * (size_t)pool2d_out_w(s) * (size_t)s->in_c;
}

/* Where the window element `k` of output element `i` lies in the input; -1: in the padding. */
static int place(const struct pool2d_shape *s, int i, int k)
{
    int oh = pool2d_out_h(s), ow = pool2d_out_w(s);
    int c = i % s->in_c, x = i / s->in_c % ow, y = i / s->in_c / ow % oh, b = i / s->in_c / ow / oh;
    int row = y * s->stride + k / s->window - s->pad, col = x * s->stride + k % s->window - s->pad;
    if (row < 0 || row >= s->in_h || col < 0 || col >= s->in_w)
        return -1;
    return ((b * s->in_h + row) * s->in_w + col) * s->in_c + c;
}

static int largest(const struct pool2d_shape *s, const float *in, int i)
{
    int best = -1;
    for (int k = 0; k < s->window * s->window; k++) {
        int at = place(s, i, k);
        if (at >= 0 && (best < 0 || in[at] > in[place(s, i, best)] || isnan(in[at])))
            best = k;
    }
    return best;
}

/* Means, and what each gives back to the elements of its window. */
static void check_mean(const struct pool2d_shape *s, enum kctx_isa isa, int threads)
{
    struct guards g = {.seed = 13};
    struct kctx *ctx = make_ctx(isa, threads, 0);
    float *in = guards_random(&g, n_in(s)), *out = guards_floats(&g, n_out(s));
    float *dout = guards_random(&g, n_out(s)), *din = guards_floats(&g, n_in(s));
    double *want = doubles(n_out(s)), *back = doubles(n_in(s));
    const int window = s->window * s->window;
    ctx->ops->avgpool2d_forward(ctx, s, out, in);
    ctx->ops->avgpool2d_backward(ctx, s, din, dout);
    for (int i = 0; i < (int)n_out(s); i++) {
        int n = window;
        for (int k = 0; s->inside && k < window; k++)
            n -= place(s, i, k) < 0;
        for (int k = 0; k < window; k++) {
            int at = place(s, i, k);
            if (at < 0)
                continue;
            want[i] += (double)in[at] / n;
            back[at] += (double)dout[i] / n;
        }
    }
    assert_close(out, want, n_out(s));
    assert_close(din, back, n_in(s));
    free(want);
    free(back);
    kctx_free(ctx);
    guards_release(&g);
}

static void check_shape(const struct pool2d_shape *s, enum kctx_isa isa, int threads, bool relu)
{
    struct err err = {0};
    struct guards g = {.seed = 11};
    assert_int_equal(pool2d_check(s, &err), 0);
    struct kctx *ctx = make_ctx(isa, threads, 0);
    float *in = guards_random(&g, n_in(s)), *out = guards_floats(&g, n_out(s)),
          *alone = guards_floats(&g, n_out(s));
    float *dout = guards_random(&g, n_out(s)), *din = guards_floats(&g, n_in(s));
    uint8_t *argmax = guards_bytes(&g, n_out(s));
    for (size_t i = 0; i < n_in(s); i++)
        in[i] = rintf(in[i] * 4); /* many ties */
    if (n_in(s) > 40)
        memset(in + 40, 0xff, sizeof *in);

    ctx->ops->maxpool2d_forward(ctx, s, out, argmax, in);
    ctx->ops->maxpool2d_forward(ctx, s, alone, NULL, in);
    assert_same_bits(out, alone, n_out(s) * sizeof *out);
    ctx->ops->maxpool2d_backward(ctx, s, din, dout, argmax, relu ? out : NULL);
    double *want = doubles(n_in(s));
    for (int i = 0; i < (int)n_out(s); i++) {
        int k = largest(s, in, i);
        assert_int_equal(argmax[i], k);
        assert_same_bits(&out[i], &in[place(s, i, k)], sizeof *out);
        if (!relu || out[i] > 0)
            want[place(s, i, k)] += (double)dout[i];
    }
    assert_close(din, want, n_in(s));
    free(want);
    kctx_free(ctx);
    guards_release(&g);
}

static void test_against_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            check_shape(&shapes[i], isa, 1, false);
            check_shape(&shapes[i], isa, 3, true);
            struct pool2d_shape inside = shapes[i];
            inside.inside = true;
            for (int threads = 1; threads <= 3; threads += 2) {
                check_mean(&shapes[i], isa, threads);
                check_mean(&inside, isa, threads);
            }
        }
    }
}

static void test_refuses_what_it_cannot_do(void **state)
{
    const struct {
        struct pool2d_shape s;
        const char *field;
    } bad[] = {
        {{0, 4, 4, 1, 2, 2, 0, false}, "batch"},       {{1, 0, 4, 1, 2, 2, 0, false}, "input height"},
        {{1, 4, 0, 1, 2, 2, 0, false}, "input width"}, {{1, 4, 4, 0, 2, 2, 0, false}, "channels"},
        {{1, 4, 3, 1, 4, 2, 0, false}, "window"},      {{1, 40, 40, 1, 16, 2, 0, false}, "window"},
        {{1, 4, 4, 1, 2, 0, 0, false}, "stride"},      {{1, 4, 4, 1, 3, 1, 2, false}, "padding"},
        {{1, 4, 4, 1, 2, 1, -1, false}, "padding"},    {{1, 60000, 60000, 1, 2, 2, 0, false}, "input of"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        assert_int_equal(pool2d_check(&bad[i].s, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, bad[i].field));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_loops),
        cmocka_unit_test(test_refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
