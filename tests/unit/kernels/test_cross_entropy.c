/* test_cross_entropy.c - loss, gradient by finite differences, correct counts, refused labels. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

/* The loss of one row with logit `c` moved by h. */
static double row_loss(const float *x, int label, int n, int c, double h, double smoothing)
{
    double top = -INFINITY, sum = 0, mean = 0;
    for (int i = 0; i < n; i++)
        top = fmax(top, (double)x[i] + (i == c ? h : 0));
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] + (i == c ? h : 0) - top);
    for (int i = 0; i < n; i++)
        mean += ((double)x[i] + (i == c ? h : 0)) / n;
    return log(sum) + top - (1 - smoothing) * ((double)x[label] + (label == c ? h : 0)) - smoothing * mean;
}

static void check_smoothed(int rows, int n, double smoothing)
{
    struct err err = {0};
    struct guards g = {.seed = 23};
    size_t all = (size_t)(rows * n);
    struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, 0);
    float *x = guards_random(&g, all), *d = guards_floats(&g, all);
    int32_t *labels = guards_bytes(&g, (size_t)rows * sizeof *labels);
    struct loss_result got, again;
    double loss = 0;
    int correct = 0;
    for (size_t i = 0; i < all; i++)
        x[i] *= 6;
    for (int r = 0; r < rows; r++)
        labels[r] = r * 5 % n;
    assert_int_equal(ctx->ops->cross_entropy(ctx, &got, d, x, labels, rows, n, smoothing, &err), 0);
    for (int r = 0; r < rows; r++) {
        int best = 0;
        for (int c = 0; c < n; c++) {
            double slope = row_loss(x + r * n, labels[r], n, c, 1e-5, smoothing) -
                           row_loss(x + r * n, labels[r], n, c, -1e-5, smoothing);
            assert_true(fabs((double)d[r * n + c] - slope / 2e-5 / rows) < 1e-6);
            best = x[r * n + c] > x[r * n + best] ? c : best;
        }
        loss += row_loss(x + r * n, labels[r], n, -1, 0, smoothing);
        correct += best == labels[r];
    }
    assert_true(fabs(got.sum - loss) <= 1e-6 * fabs(loss) + 1e-12);
    assert_int_equal(got.correct, correct);
    assert_int_equal(ctx->ops->cross_entropy(ctx, &again, NULL, x, labels, rows, n, smoothing, &err), 0);
    assert_true(again.sum == got.sum && again.correct == got.correct);
    assert_int_equal(ctx->ops->cross_entropy(ctx, &again, x, x, labels, rows, n, smoothing, &err), 0);
    assert_same_bits(x, d, all * sizeof *x);
    kctx_free(ctx);
    guards_release(&g);
}

static void check(int rows, int n)
{
    check_smoothed(rows, n, 0);
    check_smoothed(rows, n, 0.1);
    check_smoothed(rows, n, 1);
}

/* The mean of squares and its slope, with and without a gradient requested, in place. */
static void test_mse(void **state)
{
    static const int shapes[][2] = {{1, 1}, {1, 7}, {32, 1}, {5, 33}};

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        struct guards g = {.seed = 61};
        int rows = shapes[k][0], cols = shapes[k][1];
        size_t n = (size_t)(rows * cols);
        struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 2, 0);
        float *x = guards_random(&g, n), *y = guards_random(&g, n), *d = guards_floats(&g, n);
        double want = 0;
        for (size_t i = 0; i < n; i++)
            want += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]) / cols;
        double got = ctx->ops->mse(ctx, d, x, y, rows, cols);
        assert_true(fabs(got - want) <= 1e-6 * want);
        assert_true(ctx->ops->mse(ctx, NULL, x, y, rows, cols) == got);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)d[i] - 2 * ((double)x[i] - (double)y[i]) / (double)n) < 1e-6);
        ctx->ops->mse(ctx, x, x, y, rows, cols);
        assert_same_bits(x, d, n * sizeof *x);
        kctx_free(ctx);
        guards_release(&g);
    }
}

static void test_against_f64_and_differences(void **state)
{
    (void)state;
    check(1, 1);
    check(1, 10);
    check(32, 10);
    check(33, 7);
    check(5, 129);
}

static void test_ties_and_extremes(void **state)
{
    struct err err = {0};
    struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, 0);
    const float x[] = {2, 2, 1, /**/ 1e30F, -1e30F, 0, /**/ 0, 0, 0};
    struct loss_result r;

    (void)state;
    assert_int_equal(ctx->ops->cross_entropy(ctx, &r, NULL, x, (int32_t[]){0, 0, 2}, 3, 3, 0, &err), 0);
    assert_int_equal(r.correct, 2); /* the first of equals wins */
    assert_true(fabs(r.sum - (log(2 + exp(-1)) + 0 + log(3))) < 1e-6);
    assert_int_equal(ctx->ops->cross_entropy(ctx, &r, NULL, x, (int32_t[]){1, 0, 0}, 3, 3, 0, &err), 0);
    assert_int_equal(r.correct, 2);
    const float with_nan[] = {0, NAN, 1};
    assert_int_equal(ctx->ops->cross_entropy(ctx, &r, NULL, with_nan, (int32_t[]){0}, 1, 3, 0, &err), 0);
    assert_true(isnan(r.sum));
    assert_int_equal(r.correct, 0);
    kctx_free(ctx);
}

static void test_refuses_labels(void **state)
{
    struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, 0);
    const float x[6] = {0};

    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        struct err err = {0};
        struct loss_result r = {-1, -1};
        float d[6] = {9, 9, 9, 9, 9, 9};
        int32_t labels[] = {0, bad ? 3 : -1};
        assert_int_equal(ctx->ops->cross_entropy(ctx, &r, d, x, labels, 2, 3, 0, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_string_equal(err.msg, bad ? "cross_entropy: the label of row 1 is 3, expected 0..2"
                                         : "cross_entropy: the label of row 1 is -1, expected 0..2");
        assert_true(r.correct == -1 && d[0] == 9);
    }
    kctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_f64_and_differences),
        cmocka_unit_test(test_mse),
        cmocka_unit_test(test_ties_and_extremes),
        cmocka_unit_test(test_refuses_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
