/* test_flat.c - flatten, relu and reduce: exact results, in every instruction set. */
#include "check.h"
#include "kernels/flatten.h"
#include "kernels/reduce.h"
#include "kernels/relu.h"

#include <math.h>
#include <string.h>

static const size_t sizes[] = {0, 1, 3, 15, 16, 17, 31, 33, 4096, 4097, 13000};

static void test_relu(void **state)
{
    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            struct guards g = {.seed = 43};
            size_t n = sizes[k];
            struct kctx *ctx = make_ctx(isa, 1 + (int)k % 3, 0);
            float *x = guards_random(&g, n), *out = guards_floats(&g, n);
            float *d = guards_random(&g, n), *din = guards_floats(&g, n);
            if (n > 2)
                memset(x + 2, 0xff, sizeof *x);
            if (n > 14)
                x[14] = 0;
            relu_forward(ctx, out, x, n);
            relu_backward(ctx, din, d, out, n);
            for (size_t i = 0; i < n; i++) {
                float y = x[i] < 0 ? 0 : x[i];
                assert_same_bits(&out[i], &y, sizeof y);
                assert_true(din[i] == (y > 0 ? d[i] : 0));
            }
            relu_forward(ctx, x, x, n);
            relu_backward(ctx, d, d, x, n);
            assert_same_bits(x, out, n * sizeof *x);
            assert_same_bits(d, din, n * sizeof *d);
            kctx_free(ctx);
            guards_release(&g);
        }
    }
}

static void test_reduce(void **state)
{
    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            for (int slices = 1; slices <= 5; slices++) {
                struct guards g = {.seed = 47};
                size_t n = sizes[k];
                struct kctx *ctx = make_ctx(isa, slices, 0);
                const float *s[5];
                float *own = NULL;
                for (int r = 0; r < slices; r++)
                    s[r] = own = guards_random(&g, n);
                float *out = guards_floats(&g, n), *parts = guards_floats(&g, n);
                reduce_sum(ctx, out, s, slices, n, 0.25F);
                for (size_t i = 0; i < n; i++) {
                    volatile float sum = s[0][i];
                    for (int r = 1; r < slices; r++)
                        sum = sum + s[r][i];
                    float want = sum * 0.25F;
                    assert_same_bits(&out[i], &want, sizeof want);
                }
                /* In two parts, as ranks that share the work would. */
                const float *rest[5];
                for (int r = 0; r < slices; r++)
                    rest[r] = s[r] + n / 3;
                reduce_sum(ctx, parts, s, slices, n / 3, 0.25F);
                reduce_sum(ctx, parts + n / 3, rest, slices, n - n / 3, 0.25F);
                assert_same_bits(parts, out, n * sizeof *out);
                if (slices == 1) {
                    reduce_sum(ctx, own, s, 1, n, 0.25F);
                    assert_same_bits(own, out, n * sizeof *out);
                }
                kctx_free(ctx);
                guards_release(&g);
            }
        }
    }
}

static void test_flatten(void **state)
{
    static const struct flatten_shape shapes[] = {{1, 1, 1, 1}, {32, 3, 3, 64}, {2, 4, 5, 7}, {3, 1, 9, 17}};

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        const struct flatten_shape *s = &shapes[k];
        struct err err = {0};
        struct guards g = {.seed = 53};
        int pixels = s->h * s->w;
        size_t n = (size_t)(s->batch * pixels * s->c);
        struct kctx *ctx = make_ctx(KCTX_ISA_AUTO, 1, 0);
        assert_int_equal(flatten_check(s, &err), 0);
        float *in = guards_random(&g, n), *out = guards_floats(&g, n), *back = guards_floats(&g, n);
        flatten_forward(ctx, s, out, in);
        for (int b = 0; b < s->batch; b++)
            for (int c = 0; c < s->c; c++)
                for (int p = 0; p < pixels; p++)
                    assert_true(out[(b * s->c + c) * pixels + p] == in[(b * pixels + p) * s->c + c]);
        flatten_backward(ctx, s, back, out);
        assert_same_bits(back, in, n * sizeof *in);
        kctx_free(ctx);
        guards_release(&g);
    }
}

static void test_flatten_refuses(void **state)
{
    static const struct flatten_shape bad[] = {
        {0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}, {2, 40000, 40000, 1}};

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
        struct err err = {0};
        assert_int_equal(flatten_check(&bad[k], &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_flatten_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
