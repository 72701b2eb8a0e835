/* test_maxpool2d.c - pooling by comparison with plain loops: values, places, ties, NaN, overlapping windows. */
#include "check.h"
#include "kernels/maxpool2d.h"

#include <math.h>
#include <string.h>

static const struct maxpool2d_shape shapes[] = {
    /* batch, h, w, c, window, stride */
    {1, 1, 1, 1, 1, 1},   {2, 26, 26, 32, 2, 2}, {3, 11, 11, 64, 2, 2},
    {2, 7, 5, 17, 2, 2},  {1, 9, 8, 3, 3, 2},    {2, 16, 15, 33, 15, 1},
    {1, 10, 10, 5, 2, 3}, {1, 5, 5, 1, 3, 1},    {2, 24, 24, 32, 2, 2},
};

static size_t n_in(const struct maxpool2d_shape *s)
{
    return (size_t)s->batch * (size_t)s->in_h * (size_t)s->in_w * (size_t)s->in_c;
}
static size_t n_out(const struct maxpool2d_shape *s)
{
    return (size_t)s->batch * (size_t)maxpool2d_out_h(s) * (size_t)maxpool2d_out_w(s) * (size_t)s->in_c;
}

/* Where the window element `k` of output element `i` lies in the input. */
static int place(const struct maxpool2d_shape *s, int i, int k)
{
    int oh = maxpool2d_out_h(s), ow = maxpool2d_out_w(s);
    int c = i % s->in_c, x = i / s->in_c % ow, y = i / s->in_c / ow % oh, b = i / s->in_c / ow / oh;
    return ((b * s->in_h + y * s->stride + k / s->window) * s->in_w + x * s->stride + k % s->window) *
               s->in_c +
           c;
}

static int largest(const struct maxpool2d_shape *s, const float *in, int i)
{
    int best = 0;
    for (int k = 1; k < s->window * s->window; k++) {
        float v = in[place(s, i, k)];
        if (v > in[place(s, i, best)] || isnan(v))
            best = k;
    }
    return best;
}

static void check_shape(const struct maxpool2d_shape *s, enum kctx_isa isa, int threads, bool relu)
{
    struct err err = {0};
    struct guards g = {.seed = 11};
    assert_int_equal(maxpool2d_check(s, &err), 0);
    struct kctx *ctx = make_ctx(isa, threads, 0);
    float *in = guards_random(&g, n_in(s)), *out = guards_floats(&g, n_out(s)),
          *alone = guards_floats(&g, n_out(s));
    float *dout = guards_random(&g, n_out(s)), *din = guards_floats(&g, n_in(s));
    uint8_t *argmax = guards_bytes(&g, n_out(s));
    for (size_t i = 0; i < n_in(s); i++)
        in[i] = rintf(in[i] * 4); /* many ties */
    if (n_in(s) > 40)
        memset(in + 40, 0xff, sizeof *in);

    maxpool2d_forward(ctx, s, out, argmax, in);
    maxpool2d_forward(ctx, s, alone, NULL, in);
    assert_same_bits(out, alone, n_out(s) * sizeof *out);
    maxpool2d_backward(ctx, s, din, dout, argmax, relu ? out : NULL);
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
        }
    }
}

static void test_refuses_what_it_cannot_do(void **state)
{
    const struct {
        struct maxpool2d_shape s;
        const char *field;
    } bad[] = {{{0, 4, 4, 1, 2, 2}, "batch"},       {{1, 0, 4, 1, 2, 2}, "input height"},
               {{1, 4, 0, 1, 2, 2}, "input width"}, {{1, 4, 4, 0, 2, 2}, "channels"},
               {{1, 4, 3, 1, 4, 2}, "window"},      {{1, 40, 40, 1, 16, 2}, "window"},
               {{1, 4, 4, 1, 2, 0}, "stride"},      {{1, 60000, 60000, 1, 2, 2}, "input of"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        assert_int_equal(maxpool2d_check(&bad[i].s, &err), -1);
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
