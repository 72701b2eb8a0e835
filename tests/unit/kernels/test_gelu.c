/* test_gelu.c - both forms and their slopes against libm in f64, over all magnitudes and in every set. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>

static double gelu64(enum gelu_form form, double x)
{
    if (form == GELU_EXACT)
        return x * 0.5 * erfc(-x / sqrt(2));
    return x * 0.5 * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double slope64(enum gelu_form form, double x)
{
    double h = 1e-5;
    return (gelu64(form, x + h) - gelu64(form, x - h)) / (2 * h);
}

static void check_values(enum gelu_form form, enum kctx_isa isa, int threads)
{
    enum { N = 9001 };
    struct guards g = {.seed = 5};
    struct kctx *ctx = make_ctx(isa, threads, 0);
    float *x = guards_random(&g, N), *out = guards_floats(&g, N);
    float *dout = guards_random(&g, N), *din = guards_floats(&g, N);
    for (int i = 0; i < N; i++)
        x[i] = i % 3 ? x[i] * 14 : x[i];
    ctx->ops->gelu_forward(ctx, form, out, x, N);
    ctx->ops->gelu_backward(ctx, form, din, dout, x, N);
    for (int i = 0; i < N; i++) {
        double want = gelu64(form, (double)x[i]), slope = slope64(form, (double)x[i]) * (double)dout[i];
        if (!(fabs((double)out[i] - want) <= 3e-7 * fabs(want) + 1e-7))
            fail_msg("gelu(%.9g) is %.9g, expected %.9g", (double)x[i], (double)out[i], want);
        if (!(fabs((double)din[i] - slope) <= 4e-7))
            fail_msg("gelu'(%.9g) is %.9g, expected %.9g", (double)x[i], (double)din[i], slope);
    }
    kctx_free(ctx);
    guards_release(&g);
}

/* Far out it is 0 or x; what is no number stays so. */
static void check_ends(enum gelu_form form, enum kctx_isa isa)
{
    const float x[] = {0, -0.0F, 40, -40, 3e38F, -3e38F, 1e-40F, NAN};
    enum { N = ARRAY_LEN(x) };
    const float want[N] = {0, 0, 40, 0, 3e38F, 0, 5e-41F, NAN};
    const float want_slope[N] = {0.5F, 0.5F, 1, 0, 1, 0, 0.5F, NAN};
    float out[N], din[N], ones[N];
    struct kctx *ctx = make_ctx(isa, 1, 0);
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    ctx->ops->gelu_forward(ctx, form, out, x, N);
    ctx->ops->gelu_backward(ctx, form, din, ones, x, N);
    for (int i = 0; i < N - 1; i++) {
        assert_true(fabsf(out[i] - want[i]) <= 1e-30F);
        if (!(fabsf(din[i] - want_slope[i]) <= 1e-7F))
            fail_msg("slope at %g is %g", (double)x[i], (double)din[i]);
    }
    assert_true(isnan(out[N - 1]) && isnan(din[N - 1]));
    kctx_free(ctx);
}

static void test_against_libm(void **state)
{
    (void)state;
    for (int form = GELU_EXACT; form <= GELU_TANH; form++) {
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            check_values((enum gelu_form)form, isa, 1);
            check_values((enum gelu_form)form, isa, 3);
            check_ends((enum gelu_form)form, isa);
        }
    }
}

/* Wherever an element stands in a buffer, and whatever the set's width leaves over, it gets the same bits. */
static void test_same_bits_at_any_place(void **state)
{
    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        enum { N = 67 };
        struct guards g = {.seed = 9};
        struct kctx *ctx = make_ctx(isa, 1, 0);
        float *x = guards_random(&g, N), *all = guards_floats(&g, N), *one = guards_floats(&g, 1);
        ctx->ops->gelu_forward(ctx, GELU_EXACT, all, x, N);
        for (int i = 0; i < N; i++) {
            ctx->ops->gelu_forward(ctx, GELU_EXACT, one, x + i, 1);
            assert_same_bits(one, all + i, sizeof *one);
        }
        kctx_free(ctx);
        guards_release(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_libm),
        cmocka_unit_test(test_same_bits_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
