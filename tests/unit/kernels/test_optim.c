/* test_optim.c - Adam, AdamW and SGD against scalar f64 transcriptions over several steps. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

enum { STEPS = 12 };

static const size_t sizes[] = {1, 3, 16, 17, 4095, 4096, 4097, 9000};

static void adam_step(struct kctx *ctx, const struct adam_options *o, int64_t step, float *p, float *m,
                      float *v, const float *g, size_t n)
{
    const struct update_scalars s = adam_scalars_of(o, step);

    ctx->ops->update_step(ctx, &s, p, m, v, g, n);
}

static void sgd_step(struct kctx *ctx, const struct sgd_options *o, float *p, float *u, const float *g,
                     size_t n)
{
    const struct update_scalars s = sgd_scalars_of(o);

    ctx->ops->update_step(ctx, &s, p, u, NULL, g, n);
}

static void adam64(const struct adam_options *o, int step, double *p, double *m, double *v, double g)
{
    if (o->decoupled)
        *p *= 1 - o->lr * o->weight_decay;
    else
        g += o->weight_decay * *p;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    double m_hat = *m / (1 - pow(o->beta1, step));
    double v_hat = *v / (1 - pow(o->beta2, step));
    *p -= o->lr * m_hat / (sqrt(v_hat) + o->eps);
}

/* STEPS steps with gradients that change; p, m and v hold the result. */
static void adam_run(const struct adam_options *o, enum kctx_isa isa, int threads, size_t n, float *p,
                     float *m, float *v)
{
    struct guards g = {.seed = 31};
    struct kctx *ctx = make_ctx(isa, threads, 0);
    for (int step = 1; step <= STEPS; step++) {
        const float *grad = guards_random(&g, n);
        adam_step(ctx, o, step, p, m, v, grad, n);
    }
    kctx_free(ctx);
    guards_release(&g);
}

static void check_adam(const struct adam_options *o, enum kctx_isa isa, size_t n)
{
    struct guards g = {.seed = 29}, h = {.seed = 31};
    float *p = guards_random(&g, n), *m = guards_floats(&g, n), *v = guards_floats(&g, n);
    float *p2 = guards_floats(&g, n), *m2 = guards_floats(&g, n), *v2 = guards_floats(&g, n);
    double *wp = doubles(n), *wm = doubles(n), *wv = doubles(n);
    memset(m, 0, n * sizeof *m);
    memset(v, 0, n * sizeof *v);
    memset(m2, 0, n * sizeof *m);
    memset(v2, 0, n * sizeof *v);
    memcpy(p2, p, n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        wp[i] = (double)p[i];
    for (int step = 1; step <= STEPS; step++) {
        const float *grad = guards_random(&h, n);
        for (size_t i = 0; i < n; i++)
            adam64(o, step, &wp[i], &wm[i], &wv[i], (double)grad[i]);
    }
    adam_run(o, isa, 1, n, p, m, v);
    assert_close(p, wp, n);
    assert_close(m, wm, n);
    assert_close(v, wv, n);
    adam_run(o, isa, 3, n, p2, m2, v2);
    assert_same_bits(p, p2, n * sizeof *p);
    assert_same_bits(m, m2, n * sizeof *m);
    assert_same_bits(v, v2, n * sizeof *v);
    free(wp);
    free(wm);
    free(wv);
    guards_release(&g);
    guards_release(&h);
}

static void test_adam(void **state)
{
    static const struct adam_options options[] = {
        {.lr = 4e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .decoupled = true},
        {.lr = 1e-3, .beta1 = 0.4, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.05},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa))
                check_adam(&options[i], isa, sizes[k]);
        }
    }
}

/* Products are fused exactly where torch.optim fuses them: the same bits as scalar code, in all sets with FMA. */
static void test_adam_rounds_as_torch_does(void **state)
{
    const struct adam_options o = {.lr = 4e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    const float b2 = (float)0.999, c2 = (float)(1 - 0.999), c1 = (float)(1 - 0.9);
    const float root = (float)sqrt(1 - 0.999), step = (float)-(4e-3 / (1 - 0.9));

    (void)state;
    for (enum kctx_isa isa = isa_next(KCTX_ISA_PLAIN); isa; isa = isa_next(isa)) {
        struct guards g = {.seed = 37};
        struct kctx *ctx = make_ctx(isa, 1, 0);
        float *p = guards_random(&g, 1000), *m = guards_random(&g, 1000), *v = guards_random(&g, 1000);
        const float *grad = guards_random(&g, 1000);
        float want[3][1000];
        for (int i = 0; i < 1000; i++) {
            v[i] = fabsf(v[i]);
            volatile float decayed = v[i] * b2, scaled_grad = c2 * grad[i];
            volatile float v1 = fmaf(scaled_grad, grad[i], decayed), m1 = fmaf(c1, grad[i] - m[i], m[i]);
            volatile float denom = sqrtf(v1) / root;
            volatile float with_eps = denom + 1e-8F, scaled = step * m1;
            volatile float change = scaled / with_eps;
            want[0][i] = p[i] + change;
            want[1][i] = m1;
            want[2][i] = v1;
        }
        adam_step(ctx, &o, 1, p, m, v, grad, 1000);
        assert_same_bits(p, want[0], sizeof want[0]);
        assert_same_bits(m, want[1], sizeof want[1]);
        assert_same_bits(v, want[2], sizeof want[2]);
        kctx_free(ctx);
        guards_release(&g);
    }
}

static void test_sgd_rounds_as_torch_does(void **state)
{
    const struct sgd_options o = {.lr = 1e-2, .momentum = 0.9, .weight_decay = 0.01};
    const float lr = (float)-1e-2, momentum = (float)0.9, l2 = (float)0.01;

    (void)state;
    for (enum kctx_isa isa = isa_next(KCTX_ISA_PLAIN); isa; isa = isa_next(isa)) {
        struct guards g = {.seed = 59};
        struct kctx *ctx = make_ctx(isa, 1, 0);
        float *p = guards_random(&g, 1000), *u = guards_random(&g, 1000);
        const float *grad = guards_random(&g, 1000);
        float want_p[1000], want_u[1000];
        for (int i = 0; i < 1000; i++) {
            volatile float kept = momentum * u[i];
            want_u[i] = kept + fmaf(l2, p[i], grad[i]);
            want_p[i] = fmaf(lr, want_u[i], p[i]);
        }
        sgd_step(ctx, &o, p, u, grad, 1000);
        assert_same_bits(p, want_p, sizeof want_p);
        assert_same_bits(u, want_u, sizeof want_u);
        kctx_free(ctx);
        guards_release(&g);
    }
}

static void check_sgd(const struct sgd_options *o, enum kctx_isa isa, int threads, size_t n)
{
    struct guards g = {.seed = 41};
    struct kctx *ctx = make_ctx(isa, threads, 0);
    float *p = guards_random(&g, n), *u = guards_floats(&g, n);
    double *wp = doubles(n), *wu = doubles(n);
    memset(u, 0, n * sizeof *u);
    for (size_t i = 0; i < n; i++)
        wp[i] = (double)p[i];
    for (int step = 0; step < STEPS; step++) {
        const float *grad = guards_random(&g, n);
        sgd_step(ctx, o, p, o->momentum != 0 ? u : NULL, grad, n);
        for (size_t i = 0; i < n; i++) {
            double d = (double)grad[i] + o->weight_decay * wp[i];
            wu[i] = o->momentum * wu[i] + (1 - o->dampening) * d;
            wp[i] -= o->lr * (o->nesterov ? d + o->momentum * wu[i] : wu[i]);
        }
    }
    assert_close(p, wp, n);
    if (o->momentum != 0)
        assert_close(u, wu, n);
    free(wp);
    free(wu);
    kctx_free(ctx);
    guards_release(&g);
}

/* On every instruction set, by one thread and by three. */
static void at_all_sizes(void (*check)(const struct sgd_options *o, enum kctx_isa isa, int threads, size_t n),
                         const struct sgd_options *o)
{
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
            check(o, isa, 1, sizes[k]);
            check(o, isa, 3, sizes[k]);
        }
    }
}

static void test_sgd(void **state)
{
    static const struct sgd_options options[] = {{.lr = 1e-2},
                                                 {.lr = 1e-2, .momentum = 0.9, .weight_decay = 0.01},
                                                 {.lr = 1e-2, .momentum = 0.8, .dampening = 0.3},
                                                 {.lr = 1e-2, .momentum = 0.9, .nesterov = true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        at_all_sizes(check_sgd, &options[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_adam_rounds_as_torch_does),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_sgd_rounds_as_torch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
