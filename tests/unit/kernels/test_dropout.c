/* test_dropout.c - what is drawn depends on seed, step, layer, sample and index alone; shares, scale, gradient. */
#include "check.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

enum { BATCH = 5, LEN = 4099 };

static const uint32_t samples[BATCH] = {7, 123456, 8, 0, 4000000000U};

static void draw(enum kctx_isa isa, int threads, double p, const struct dropout_draw *d, int batch,
                 uint8_t *keep)
{
    struct guards g = {.seed = 3};
    size_t n = (size_t)batch * LEN;
    struct kctx *ctx = make_ctx(isa, threads, 0);
    struct dropout_shape s = {.batch = batch, .len = LEN, .p = p};
    float *in = guards_random(&g, n), *out = guards_floats(&g, n);
    float *dout = guards_random(&g, n), *din = guards_floats(&g, n);
    uint8_t *own = guards_bytes(&g, n);
    float scale = (float)(1 / (1 - p));
    ctx->ops->dropout_forward(ctx, &s, d, out, own, in);
    ctx->ops->dropout_backward(ctx, &s, din, dout, own);
    for (size_t i = 0; i < n; i++) {
        assert_true(own[i] <= 1);
        assert_true(out[i] == (own[i] ? in[i] * scale : 0) && din[i] == (own[i] ? dout[i] * scale : 0));
    }
    memcpy(keep, own, n);
    kctx_free(ctx);
    guards_release(&g);
}

/* In every set, with any number of threads, alone or among others. */
static void test_a_sample_has_one_mask(void **state)
{
    static uint8_t all[BATCH * LEN], again[BATCH * LEN], one[LEN];
    struct dropout_draw d = {.seed = 1, .step = 5, .layer = 2, .samples = samples};

    (void)state;
    draw(isa_first(), 1, 0.3, &d, BATCH, all);
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        for (int threads = 1; threads <= 4; threads += 3) {
            draw(isa, threads, 0.3, &d, BATCH, again);
            assert_memory_equal(all, again, sizeof all);
        }
    }
    for (int i = 0; i < BATCH; i++) {
        d.samples = samples + i;
        draw(KCTX_ISA_AUTO, 1, 0.3, &d, 1, one);
        assert_memory_equal(all + (size_t)i * LEN, one, LEN);
    }
}

/* Two independent masks of probability p agree in 1 - 2 p (1 - p) of their places; allow six deviations. */
static void assert_independent(const uint8_t *a, const uint8_t *b, size_t n, double p)
{
    double same = 0, want = 1 - 2 * p * (1 - p);
    for (size_t i = 0; i < n; i++)
        same += a[i] == b[i];
    assert_true(fabs(same / (double)n - want) < 6 * sqrt(want * (1 - want) / (double)n));
}

static void test_masks_are_independent(void **state)
{
    static uint8_t first[BATCH * LEN], other[BATCH * LEN];
    const struct dropout_draw base = {.seed = 1, .step = 5, .layer = 2, .samples = samples};
    struct dropout_draw d[] = {base, base, base, base, base};

    (void)state;
    d[0].seed = 2;
    d[1].step = 6;
    d[2].layer = 3;
    d[3].seed = 5; /* the same numbers in other places */
    d[3].step = 1;
    d[4].step = 5ULL << 32;
    draw(KCTX_ISA_AUTO, 1, 0.3, &base, BATCH, first);
    for (size_t k = 0; k < ARRAY_LEN(d); k++) {
        draw(KCTX_ISA_AUTO, 1, 0.3, &d[k], BATCH, other);
        assert_independent(first, other, sizeof first, 0.3);
    }
    for (int i = 1; i < BATCH; i++)
        assert_independent(first, first + (size_t)i * LEN, LEN, 0.3);
    for (size_t shift = 1; shift < 40; shift++)
        assert_independent(first, first + shift, sizeof first - shift, 0.3);
}

static void test_the_share_that_stays(void **state)
{
    static uint8_t keep[BATCH * LEN];
    static const double p[] = {0, 0.1, 0.5, 0.9, 0.999};
    const struct dropout_draw d = {.seed = 42, .samples = samples};

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(p); k++) {
        double stay = 0, n = sizeof keep;
        draw(KCTX_ISA_AUTO, 2, p[k], &d, BATCH, keep);
        for (size_t i = 0; i < sizeof keep; i++)
            stay += keep[i];
        assert_true(fabs(stay / n - (1 - p[k])) <= 6 * sqrt(p[k] * (1 - p[k]) / n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sample_has_one_mask),
        cmocka_unit_test(test_masks_are_independent),
        cmocka_unit_test(test_the_share_that_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
