/* test_flat.c - flatten, relu and add: exact results, in every instruction set. */
#include "check.h"
#include "kernels/ops.h"

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
            ctx->ops->relu_forward(ctx, out, x, n);
            ctx->ops->relu_backward(ctx, din, d, out, n);
            for (size_t i = 0; i < n; i++) {
                float y = x[i] < 0 ? 0 : x[i];
                assert_same_bits(&out[i], &y, sizeof y);
                assert_true(din[i] == (y > 0 ? d[i] : 0));
            }
            ctx->ops->relu_forward(ctx, x, x, n);
            ctx->ops->relu_backward(ctx, d, d, x, n);
            assert_same_bits(x, out, n * sizeof *x);
            assert_same_bits(d, din, n * sizeof *d);
            kctx_free(ctx);
            guards_release(&g);
        }
    }
}

/* Out of place, and over an operand. */
static void test_add(void **state)
{
    (void)state;
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            struct guards g = {.seed = 47};
            size_t n = sizes[k];
            struct kctx *ctx = make_ctx(isa, 3, 0);
            float *a = guards_random(&g, n), *b = guards_random(&g, n), *out = guards_floats(&g, n);
            ctx->ops->add(ctx, out, a, b, n);
            for (size_t i = 0; i < n; i++) {
                float want = a[i] + b[i];
                assert_same_bits(&out[i], &want, sizeof want);
            }
            ctx->ops->add(ctx, a, a, b, n);
            assert_same_bits(a, out, n * sizeof *out);
            kctx_free(ctx);
            guards_release(&g);
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
        ctx->ops->flatten_forward(ctx, s, out, in);
        for (int b = 0; b < s->batch; b++)
            for (int c = 0; c < s->c; c++)
                for (int p = 0; p < pixels; p++)
                    assert_true(out[(b * s->c + c) * pixels + p] == in[(b * pixels + p) * s->c + c]);
        ctx->ops->flatten_backward(ctx, s, back, out);
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
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_flatten_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
