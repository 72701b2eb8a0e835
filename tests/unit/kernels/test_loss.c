/* test_loss.c - each loss: values and gradients beside PyTorch's, and labels that are no class. */
#include "test.h"

#include "common/cleanup.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

/* torch 2.15: x = arange(6).reshape(2, 3) / 2; cross_entropy(x, tensor([2, 1]), label_smoothing=0.1), without it,
 * and mse_loss(x, x.square() - 1). */
static const float X[6] = {0, 0.5f, 1, 1.5f, 2, 2.5f};
static const int32_t LABELS[2] = {2, 1};
static const float VALUES[6] = {-1, -0.75f, 0, 1.25f, 3, 5.25f};

struct loss_spec {
    bool mse;
    double label_smoothing;
};

static double loss_per_row(const struct loss_spec *s, float *dout, int *correct)
{
    cleanup_kctx struct kctx *ctx = NULL;
    struct loss_result r = {0};
    struct err err;

    ctx = kctx_make(&(struct kctx_options){0}, &err);
    assert_non_null(ctx);
    if (s->mse)
        r.sum = ctx->ops->mse(ctx, dout, X, VALUES, 2, 3);
    else
        assert_int_equal(ctx->ops->cross_entropy(ctx, &r, dout, X, LABELS, 2, 3, s->label_smoothing, &err),
                         0);
    *correct = r.correct;
    return r.sum / 2;
}

static void losses_are_those_of_torch(void **state)
{
    (void)state;
    static const struct {
        struct loss_spec spec;
        double want;
        int correct;
        float grad[6];
    } cases[] = {
        {{0},
         0.930269718,
         1,
         {0.0931618586f, 0.153597936f, -0.246759802f, 0.0931618586f, -0.346402049f, 0.253240198f}},
        {{.label_smoothing = 0.1},
         0.955269694,
         1,
         {0.0764951929f, 0.13693127f, -0.213426471f, 0.0764951929f, -0.313068748f, 0.236573532f}},
        {{.mse = true},
         2.03125,
         0,
         {0.333333343f, 0.416666687f, 0.333333343f, 0.0833333358f, -0.333333343f, -0.916666687f}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        float grad[6];
        int correct;
        assert_true(fabs(loss_per_row(&cases[i].spec, grad, &correct) - cases[i].want) < 1e-6);
        assert_int_equal(correct, cases[i].correct);
        for (int k = 0; k < 6; k++)
            assert_true(fabsf(grad[k] - cases[i].grad[k]) < 1e-6f);
        assert_true(fabs(loss_per_row(&cases[i].spec, NULL, &correct) - cases[i].want) < 1e-6);
    }
}

static void a_label_is_a_class(void **state)
{
    (void)state;
    cleanup_kctx struct kctx *ctx = NULL;
    struct loss_result r = {.sum = 7};
    struct err err;

    ctx = kctx_make(&(struct kctx_options){0}, &err);
    assert_non_null(ctx);
    assert_int_equal(ctx->ops->cross_entropy(ctx, &r, NULL, X, (const int32_t[]){0, 3}, 2, 3, 0, &err), -1);
    assert_non_null(strstr(err.msg, "the label of row 1 is 3, expected 0..2"));
    assert_true(r.sum == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_torch),
        cmocka_unit_test(a_label_is_a_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
