/* test_softmax.c - softmax against f64, and its gradient against finite differences. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

static void softmax64(const double *x, double *p, int n)
{
    double top = x[0], sum = 0;
    for (int c = 1; c < n; c++)
        top = fmax(top, x[c]);
    for (int c = 0; c < n; c++)
        sum += p[c] = exp(x[c] - top);
    for (int c = 0; c < n; c++)
        p[c] /= sum;
}

/* sum(weight * softmax(x)) moved by `h` at place c: the function whose gradient backward gives. */
static double moved(const float *x, const float *weight, int n, int c, double h)
{
    double y[64], p[64], sum = 0;
    for (int i = 0; i < n; i++)
        y[i] = (double)x[i] + (i == c ? h : 0);
    softmax64(y, p, n);
    for (int i = 0; i < n; i++)
        sum += p[i] * (double)weight[i];
    return sum;
}

static void test_against_f64_and_differences(void **state)
{
    (void)state;
    for (int n = 1; n <= 64; n += 7) {
        for (int rows = 1; rows <= 9; rows += 4) {
            struct guards g = {.seed = 17};
            size_t all = (size_t)(rows * n);
            struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, rows > 1 ? 2 : 1, 0);
            float *x = guards_random(&g, all), *dout = guards_random(&g, all);
            float *out = guards_floats(&g, all), *din = guards_floats(&g, all);
            double *want = doubles(all), *dwant = doubles(all), *row = doubles((size_t)n);
            for (size_t i = 0; i < all; i++)
                x[i] *= 5;
            ctx->ops->softmax_forward(ctx, out, x, rows, n);
            ctx->ops->softmax_backward(ctx, din, dout, out, rows, n);
            for (int r = 0; r < rows; r++) {
                for (int c = 0; c < n; c++)
                    row[c] = (double)x[r * n + c];
                softmax64(row, want + r * n, n);
                for (int c = 0; c < n; c++)
                    dwant[r * n + c] = (moved(x + r * n, dout + r * n, n, c, 1e-5) -
                                        moved(x + r * n, dout + r * n, n, c, -1e-5)) /
                                       2e-5;
            }
            assert_close(out, want, all);
            for (size_t i = 0; i < all; i++)
                assert_true(fabs((double)din[i] - dwant[i]) < 1e-6);
            free(want);
            free(dwant);
            free(row);
            kctx_free(ctx);
            guards_release(&g);
        }
    }
}

static void test_in_place(void **state)
{
    (void)state;
    struct guards g = {.seed = 4};
    struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, 0);
    float *x = guards_random(&g, 30), *d = guards_random(&g, 30);
    float *out = guards_floats(&g, 30), *din = guards_floats(&g, 30);
    ctx->ops->softmax_forward(ctx, out, x, 3, 10);
    ctx->ops->softmax_backward(ctx, din, d, out, 3, 10);
    ctx->ops->softmax_forward(ctx, x, x, 3, 10);
    ctx->ops->softmax_backward(ctx, d, d, out, 3, 10);
    assert_same_bits(x, out, 30 * sizeof *x);
    assert_same_bits(d, din, 30 * sizeof *d);
    kctx_free(ctx);
    guards_release(&g);
}

static void test_extremes(void **state)
{
    struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, 0);
    float x[] = {1e30F, -1e30F, 1e30F, 0}, out[4];

    (void)state;
    ctx->ops->softmax_forward(ctx, out, x, 1, 4);
    assert_true(out[0] == 0.5F && out[1] == 0 && out[2] == 0.5F && out[3] == 0);
    x[1] = NAN;
    ctx->ops->softmax_forward(ctx, out, x, 1, 4);
    for (int i = 0; i < 4; i++)
        assert_true(isnan(out[i]));
    kctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_f64_and_differences),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
