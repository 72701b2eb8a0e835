/* test_norm.c - batch norm and layer norm against plain f64 ones, their gradients against finite differences of
 * those, in every instruction set and at several thread counts. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

/* Normalise `n` numbers that lie `step` apart. */
static void normal64(const double *x, double *out, int n, ptrdiff_t step, double eps)
{
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++)
        mean += x[i * step] / n;
    for (int i = 0; i < n; i++)
        var += (x[i * step] - mean) * (x[i * step] - mean) / n;
    for (int i = 0; i < n; i++)
        out[i * step] = (x[i * step] - mean) / sqrt(var + eps);
}

struct net {
    bool rows; /* layer norm; else batch norm */
    bool train;
    int r, c;
    double eps;
    double *x, *w, *b, *mean, *var; /* mean, var: running */
    const float *pull;
};

/* The output, and the function of it whose gradient by the output is `pull`. */
static double forward64(const struct net *n, double *out)
{
    double sum = 0;
    for (int i = 0; n->rows && i < n->r; i++)
        normal64(n->x + (ptrdiff_t)i * n->c, out + (ptrdiff_t)i * n->c, n->c, 1, n->eps);
    for (int i = 0; !n->rows && n->train && i < n->c; i++)
        normal64(n->x + i, out + i, n->r, n->c, n->eps);
    for (int i = 0; i < n->r * n->c; i++) {
        int c = i % n->c;
        if (!n->rows && !n->train)
            out[i] = (n->x[i] - n->mean[c]) / sqrt(n->var[c] + n->eps);
        out[i] = out[i] * n->w[c] + n->b[c];
        sum += out[i] * (double)n->pull[i];
    }
    return sum;
}

static void slopes(const struct net *n, double *at, size_t count, double *slope)
{
    double *out = doubles((size_t)(n->r * n->c));
    for (size_t i = 0; i < count; i++) {
        double keep = at[i];
        at[i] = keep + 1e-5;
        double up = forward64(n, out);
        at[i] = keep - 1e-5;
        slope[i] = (up - forward64(n, out)) / 2e-5;
        at[i] = keep;
    }
    free(out);
}

static double *widened(const float *x, size_t n)
{
    double *d = doubles(n);
    for (size_t i = 0; i < n; i++)
        d[i] = (double)x[i];
    return d;
}

/* As assert_close, with room for what finite differences cost, and for gradients that cancel to nothing. */
static void assert_slopes(const float *got, const double *want, size_t n)
{
    double wrong = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        wrong += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        all += want[i] * want[i];
    }
    if (!(sqrt(wrong) <= 2e-5 * sqrt(all) + 1e-5 * sqrt((double)n)))
        fail_msg("gradients of %zu elements are off by %g, of %g", n, sqrt(wrong), sqrt(all));
}

struct results {
    float *out, *mean, *rstd, *running_mean, *running_var, *din, *dw, *db;
};

static void run(const struct net *n, enum kctx_isa isa, int threads, const float *x, const float *w,
                const float *b, struct results *r)
{
    struct err err = {0};
    struct batchnorm_shape s = {.rows = n->r, .channels = n->c, .eps = n->eps, .momentum = 0.1};
    struct layernorm_shape l = {.rows = n->r, .channels = n->c, .eps = n->eps};
    struct kctx *ctx = make_ctx(isa, threads, n->rows ? 0 : batchnorm_workspace_bytes(&s));
    if (n->rows) {
        assert_int_equal(layernorm_check(&l, &err), 0);
        ctx->ops->layernorm_forward(ctx, &l, r->out, r->mean, r->rstd, x, w, b);
        ctx->ops->layernorm_backward(ctx, &l, r->din, r->dw, r->db, n->pull, NULL, x, r->mean, r->rstd, w);
    } else {
        assert_int_equal(batchnorm_check(&s, &err), 0);
        ctx->ops->batchnorm_forward(ctx, &s, n->train, r->out, r->mean, r->rstd, r->running_mean,
                                    r->running_var, x, w, b);
        poison_scratch(ctx);
        ctx->ops->batchnorm_backward(ctx, &s, n->train, r->din, r->dw, r->db, n->pull, x, r->mean, r->rstd,
                                     w);
    }
    kctx_free(ctx);
}

static struct results results(struct guards *g, const struct net *n, const float *mean, const float *var)
{
    size_t all = (size_t)(n->r * n->c), c = (size_t)n->c, kept = n->rows ? (size_t)n->r : c;
    struct results r = {guards_floats(g, all), guards_floats(g, kept), guards_floats(g, kept),
                        guards_floats(g, c),   guards_floats(g, c),    guards_floats(g, all),
                        guards_floats(g, c),   guards_floats(g, c)};
    memcpy(r.running_mean, mean, c * sizeof *mean);
    memcpy(r.running_var, var, c * sizeof *var);
    return r;
}

static void check_running(const struct net *n, const struct results *r)
{
    for (int c = 0; c < n->c; c++) {
        double mean = 0, var = 0;
        for (int i = 0; i < n->r; i++)
            mean += n->x[i * n->c + c] / n->r;
        for (int i = 0; i < n->r; i++)
            var += (n->x[i * n->c + c] - mean) * (n->x[i * n->c + c] - mean) / (n->r > 1 ? n->r - 1 : 1);
        double m = n->train ? 0.9 * n->mean[c] + 0.1 * mean : n->mean[c];
        double v = n->train ? 0.9 * n->var[c] + 0.1 * var : n->var[c];
        assert_true(fabs((double)r->running_mean[c] - m) <= 1e-6);
        assert_true(fabs((double)r->running_var[c] - v) <= 1e-6 * (1 + v));
    }
}

static void check(struct net n, enum kctx_isa isa)
{
    struct guards g = {.seed = 71};
    size_t all = (size_t)(n.r * n.c), c = (size_t)n.c;
    float *x = guards_random(&g, all), *w = guards_random(&g, c), *b = guards_random(&g, c);
    float *mean = guards_random(&g, c), *var = guards_random(&g, c);
    n.pull = guards_random(&g, all);
    for (size_t i = 0; i < all; i++)
        x[i] = x[i] * 3 + 5;
    for (size_t i = 0; i < c; i++)
        var[i] = var[i] * var[i] + 0.1F;
    n.x = widened(x, all);
    n.w = widened(w, c);
    n.b = widened(b, c);
    n.mean = widened(mean, c);
    n.var = widened(var, c);
    struct results r = results(&g, &n, mean, var), again = results(&g, &n, mean, var);
    double *out = doubles(all), *slope = doubles(all);

    run(&n, isa, 1, x, w, b, &r);
    forward64(&n, out);
    for (size_t i = 0; i < all; i++)
        if (!(fabs((double)r.out[i] - out[i]) <= 1e-5))
            fail_msg("output %zu is %g, expected %g", i, (double)r.out[i], out[i]);
    if (!n.rows)
        check_running(&n, &r);
    slopes(&n, n.x, all, slope);
    assert_slopes(r.din, slope, all);
    slopes(&n, n.w, c, slope);
    assert_slopes(r.dw, slope, c);
    slopes(&n, n.b, c, slope);
    assert_slopes(r.db, slope, c);

    run(&n, isa, 3, x, w, b, &again);
    assert_same_bits(r.out, again.out, all * sizeof *x);
    assert_same_bits(r.din, again.din, all * sizeof *x);
    assert_same_bits(r.dw, again.dw, c * sizeof *x);
    assert_same_bits(r.db, again.db, c * sizeof *x);
    free(n.x);
    free(n.w);
    free(n.b);
    free(n.mean);
    free(n.var);
    free(out);
    free(slope);
    guards_release(&g);
}

static const int shapes[][2] = {{2, 1}, {7, 3}, {5, 16}, {3, 17}, {130, 2}, {4, 35}, {65, 8}};

static void test_batchnorm(void **state)
{
    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
            check((struct net){.train = true, .r = shapes[i][0], .c = shapes[i][1], .eps = 1e-5}, isa);
            check((struct net){.r = shapes[i][0], .c = shapes[i][1], .eps = 1e-5}, isa);
        }
    }
}

static void test_layernorm(void **state)
{
    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
            check((struct net){.rows = true, .r = shapes[i][1], .c = shapes[i][0], .eps = 1e-3}, isa);
    }
}

/* torch refuses a batch of one row in training; the last batch of an epoch may be one. It gives the bias. */
static void test_a_single_row(void **state)
{
    float x[3] = {1, -2, 5}, w[3] = {1, 2, 3}, b[3] = {0.5F, 0.25F, -1}, ones[3] = {1, 1, 1};
    float out[3], mean[3], rstd[3], run_mean[3] = {0}, run_var[3] = {1, 1, 1}, din[3], dw[3], db[3];
    const struct batchnorm_shape s = {.rows = 1, .channels = 3, .eps = 1e-5, .momentum = 0.1};
    struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, batchnorm_workspace_bytes(&s));

    (void)state;
    ctx->ops->batchnorm_forward(ctx, &s, true, out, mean, rstd, run_mean, run_var, x, w, b);
    ctx->ops->batchnorm_backward(ctx, &s, true, din, dw, db, ones, x, mean, rstd, w);
    for (int i = 0; i < 3; i++) {
        assert_true(fabsf(out[i] - b[i]) <= 1e-3F);
        assert_true(din[i] == 0 && dw[i] == 0 && db[i] == 1);
        assert_true(fabsf(run_var[i] - 0.9F) < 1e-6F && fabsf(run_mean[i] - 0.1F * x[i]) < 1e-6F);
    }
    kctx_free(ctx);
}

/* Channels whose mean is far from 0 keep their variance. */
static void test_large_means(void **state)
{
    enum { R = 64 };
    float x[R], out[R], mean, rstd, run_mean = 0, run_var = 1;
    const float one = 1, zero = 0;
    const struct batchnorm_shape s = {.rows = R, .channels = 1, .eps = 1e-5, .momentum = 0.1};

    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        struct kctx *ctx = make_ctx(isa, 1, batchnorm_workspace_bytes(&s));
        for (int i = 0; i < R; i++)
            x[i] = 10000.0F + (float)(i % 2);
        ctx->ops->batchnorm_forward(ctx, &s, true, out, &mean, &rstd, &run_mean, &run_var, x, &one, &zero);
        assert_true(fabs((double)rstd - 1 / sqrt(0.25 + 1e-5)) < 1e-4);
        kctx_free(ctx);
    }
}

static void test_refuses_what_it_cannot_do(void **state)
{
    static const int bad[][2] = {{0, 1}, {1, 0}, {65536, 65536}, {1, INT32_MAX}};
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct batchnorm_shape b = {.rows = bad[i][0], .channels = bad[i][1]};
        struct layernorm_shape l = {.rows = bad[i][0], .channels = bad[i][1]};
        assert_int_equal(batchnorm_check(&b, &err), -1);
        assert_int_equal(layernorm_check(&l, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batchnorm),
        cmocka_unit_test(test_layernorm),
        cmocka_unit_test(test_a_single_row),
        cmocka_unit_test(test_large_means),
        cmocka_unit_test(test_refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
