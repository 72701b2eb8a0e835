/* test_optim.c - learning rates over epochs, and updates against torch.optim's formulas in f64. */
#include "test.h"

#include "common/cleanup.h"
#include "trainer/model/optim.h"

#include <math.h>

static void rates_follow_the_schedule(void **state)
{
    (void)state;
    struct optimizer_spec adam = {.lr = 0.001, .lr_times_world = true};
    struct optimizer_spec own = {.lr = 0.001};
    struct schedule_spec step = {.type = SCHEDULE_STEP, .every_epochs = 1, .gamma = 0.7};
    struct schedule_spec slow = {.type = SCHEDULE_STEP, .every_epochs = 3, .gamma = 0.5};
    struct schedule_spec flat = {.type = SCHEDULE_CONSTANT, .every_epochs = 1, .gamma = 1};

    assert_true(optim_rate(&adam, &step, 4, 1) == 0.001 * 4);
    assert_true(optim_rate(&adam, &step, 4, 2) == 0.001 * 4 * 0.7);
    assert_true(optim_rate(&adam, &step, 4, 3) == 0.001 * 4 * 0.7 * 0.7);
    assert_true(optim_rate(&own, &step, 4, 1) == 0.001);
    assert_true(optim_rate(&own, &slow, 1, 3) == 0.001);
    assert_true(optim_rate(&own, &slow, 1, 4) == 0.0005);
    assert_true(optim_rate(&own, &slow, 1, 7) == 0.00025);
    assert_true(optim_rate(&adam, &flat, 2, 100) == 0.002);
}

static void adam_counts_its_steps(void **state)
{
    (void)state;
    struct optimizer_spec spec = {
        .type = OPTIMIZER_ADAM, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    cleanup_kctx struct kctx *ctx = NULL;
    cleanup_optim struct optim o = {0};
    struct err err;
    enum { N = 21 };
    float values[N];
    float grad[N];
    double p[N];
    double m[N] = {0};
    double v[N] = {0};

    ctx = kctx_make(&(struct kctx_options){0}, &err);
    assert_non_null(ctx);
    assert_int_equal(optim_make(&o, &spec, N, &err), 0);
    for (int i = 0; i < N; i++)
        p[i] = values[i] = (float)(i - 10) / 7;
    for (int t = 1; t <= 50; t++) {
        for (int i = 0; i < N; i++) {
            grad[i] = (float)sin(t + i * i);
            m[i] = 0.9 * m[i] + 0.1 * grad[i];
            v[i] = 0.999 * v[i] + 0.001 * (double)grad[i] * grad[i];
            p[i] -= 0.01 / (1 - pow(0.9, t)) * m[i] / (sqrt(v[i]) / sqrt(1 - pow(0.999, t)) + 1e-8);
        }
        optim_step(&o, ctx, 0.01, values, grad);
    }
    assert_int_equal(o.step, 50);
    for (int i = 0; i < N; i++)
        assert_true(fabs(values[i] - p[i]) < 2e-6);
}

static void sgd_needs_no_state(void **state)
{
    (void)state;
    struct optimizer_spec spec = {.type = OPTIMIZER_SGD, .lr = 0.5};
    cleanup_kctx struct kctx *ctx = NULL;
    cleanup_optim struct optim o = {0};
    struct err err;
    float values[3] = {1, 2, 3};
    const float grad[3] = {1, -1, 0.25f};

    ctx = kctx_make(&(struct kctx_options){0}, &err);
    assert_non_null(ctx);
    assert_int_equal(optim_make(&o, &spec, 3, &err), 0);
    assert_null(o.m);
    optim_step(&o, ctx, 0.25, values, grad);
    assert_true(values[0] == 0.75f && values[1] == 2.25f && values[2] == 2.9375f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_the_schedule),
        cmocka_unit_test(adam_counts_its_steps),
        cmocka_unit_test(sgd_needs_no_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
