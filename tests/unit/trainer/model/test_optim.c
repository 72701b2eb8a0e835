/* test_optim.c - learning rates over epochs, and updates against torch.optim's formulas in f64. */
#include "test.h"

#include "common/cleanup.h"
#include "trainer/model/optim.h"

#include <math.h>

#include "../../../golden/torch/training.h"

#include <string.h>

static void rates_follow_the_schedule(void **state)
{
    (void)state;
    struct optimizer_spec adam = {.lr = 0.001, .lr_times_world = true};
    struct optimizer_spec own = {.lr = 0.001};
    struct schedule_spec step = {.type = SCHEDULE_STEP, .every = 1, .gamma = 0.7};
    struct schedule_spec slow = {.type = SCHEDULE_STEP, .every = 3, .gamma = 0.5};
    struct schedule_spec flat = {.type = SCHEDULE_CONSTANT, .every = 1, .gamma = 1};

    assert_true(optim_rate(&adam, &step, 4, 1, 99) == 0.001 * 4);
    assert_true(optim_rate(&adam, &step, 4, 2, 0) == 0.001 * 4 * 0.7);
    assert_true(optim_rate(&adam, &step, 4, 3, 0) == 0.001 * 4 * 0.7 * 0.7);
    assert_true(optim_rate(&own, &step, 4, 1, 0) == 0.001);
    assert_true(optim_rate(&own, &slow, 1, 3, 0) == 0.001);
    assert_true(optim_rate(&own, &slow, 1, 4, 0) == 0.0005);
    assert_true(optim_rate(&own, &slow, 1, 7, 0) == 0.00025);
    assert_true(optim_rate(&adam, &flat, 2, 100, 0) == 0.002);
    slow.per_step = true;
    assert_true(optim_rate(&own, &slow, 1, 1, 6) == 0.00025);
    /* Too many products to make one by one. */
    slow.gamma = 0.9999;
    assert_true(fabs(optim_rate(&own, &slow, 1, 1, 90000) / (0.001 * pow(0.9999, 3e4)) - 1) < 1e-9);
}

static void rates_are_those_of_torch(void **state)
{
    (void)state;
    const struct optimizer_spec o = {.lr = 0.1};

    for (size_t i = 0; i < ARRAY_LEN(golden_schedules); i++) {
        struct schedule_spec s = golden_schedules[i].spec;
        struct schedule_spec by_step = s;
        by_step.per_step = true;
        for (int t = 0; t < GOLDEN_SCHEDULE_TIMES; t++) {
            double want = golden_schedules[i].rate[t];
            double got = optim_rate(&o, &s, 1, t + 1, 12345);
            bool exact = t < s.warmup ? s.warmup_last_full : s.type != SCHEDULE_COSINE;
            if (s.type == SCHEDULE_COSINE && t - s.warmup >= s.total) { /* torch's rises again */
                want = s.min_lr;
                exact = true;
            }
            if (exact ? got != want : !(fabs(got / want - 1) < 1e-12))
                fail_msg("schedule %zu at %d: %.17g, expected %.17g", i, t, got, want);
            assert_true(optim_rate(&o, &by_step, 1, 77, t) == got);
        }
    }
}

/* Where ranks came or went a step may begin between two of the schedule's. */
static void rates_between_steps(void **state)
{
    (void)state;
    const struct optimizer_spec o = {.lr = 0.1};
    struct schedule_spec s = {
        .type = SCHEDULE_COSINE, .per_step = true, .warmup = 4, .warmup_last_full = true, .total = 8};

    assert_true(optim_rate(&o, &s, 1, 1, 2.5) == 0.1 * (3.5 / 4));
    assert_true(optim_rate(&o, &s, 1, 1, 3.5) == 0.1); /* no more than the whole */
    for (double t = 4; t < 12; t += 0.25)
        assert_true(optim_rate(&o, &s, 1, 1, t + 0.25) < optim_rate(&o, &s, 1, 1, t));
    s = (struct schedule_spec){.type = SCHEDULE_STEP, .per_step = true, .every = 3, .gamma = 0.5};
    assert_true(optim_rate(&o, &s, 1, 1, 2.75) == 0.1);
    assert_true(optim_rate(&o, &s, 1, 1, 3.25) == 0.05);
}

static void a_cosine_ends_with_the_run(void **state)
{
    (void)state;
    const struct optimizer_spec o = {.lr = 0.1};
    struct schedule_spec s = {.type = SCHEDULE_COSINE, .min_lr = 0.001, .warmup = 2, .warmup_from = 0.5};
    struct schedule_spec epochs = optim_schedule(&s, 12, 100);

    assert_int_equal(epochs.total, 10);
    for (int64_t epoch = 13; epoch < 40; epoch++) /* of a run that was made longer it does not rise again */
        assert_true(optim_rate(&o, &epochs, 1, epoch, 0) == 0.001);
    s.per_step = true;
    assert_int_equal(optim_schedule(&s, 12, 100).total, 1198);
    s.total = 5;
    assert_int_equal(optim_schedule(&s, 12, 100).total, 5);
    s.total = 0;
    s.warmup = 5000;
    assert_int_equal(optim_schedule(&s, 12, 100).total, 1);
}

static struct optimizer_spec spec_of(const struct golden_optimizer *g)
{
    int i = 0;

    while (strcmp(optimizer_types[i], g->type) != 0)
        i++;
    struct optimizer_spec spec = optimizer_spec_of(optimizer_kinds[i], 0);
    spec.weight_decay = g->weight_decay;
    spec.decay_matrices_only = g->matrices_only;
    for (i = 0; spec.ops->options[i].key; i++) {
        const char *key = spec.ops->options[i].key;
        spec.number[i] = strcmp(key, "momentum") == 0    ? g->momentum
                         : strcmp(key, "dampening") == 0 ? g->dampening
                         : strcmp(key, "beta1") == 0     ? g->beta1
                         : strcmp(key, "beta2") == 0     ? g->beta2
                                                         : g->eps;
        spec.option[i] = strcmp(key, "nesterov") == 0 && g->nesterov;
    }
    return spec;
}

/* A matrix and a vector, decayed alike or not. */
static void updates_are_those_of_torch(void **state)
{
    (void)state;
    const struct param_row row[] = {
        {.name = "w", .dims = 2, .dim = {4, GOLDEN_OPTIM_MATRIX / 4}, .len = GOLDEN_OPTIM_MATRIX},
        {.name = "b",
         .dims = 1,
         .dim = {GOLDEN_OPTIM_LEN - GOLDEN_OPTIM_MATRIX},
         .offset = GOLDEN_OPTIM_MATRIX,
         .len = GOLDEN_OPTIM_LEN - GOLDEN_OPTIM_MATRIX}};

    for (size_t k = 0; k < ARRAY_LEN(golden_optimizers); k++) {
        const struct golden_optimizer *g = &golden_optimizers[k];
        struct optimizer_spec spec = spec_of(g);
        cleanup_kctx struct kctx *ctx = NULL;
        cleanup_optim struct optim o = {0};
        struct err err;
        float values[GOLDEN_OPTIM_LEN];
        float grad[GOLDEN_OPTIM_LEN];
        float want[GOLDEN_OPTIM_LEN];

        ctx = kctx_make(&(struct kctx_options){0}, &err);
        assert_non_null(ctx);
        assert_int_equal(optim_make(&o, &spec, row, 2, &err), 0);
        assert_int_equal(o.len, GOLDEN_OPTIM_LEN);
        assert_int_equal(o.spans, g->matrices_only ? 2 : 1);
        assert_int_equal(o.m != NULL,
                         spec.ops != &optimizer_sgd || g->momentum > 0); /* no more than it needs */
        for (int i = 0; i < GOLDEN_OPTIM_LEN; i++)
            values[i] = (float)((i * 37) % 101 - 50) / 64;
        for (int t = 0; t < GOLDEN_OPTIM_STEPS; t++) {
            for (int i = 0; i < GOLDEN_OPTIM_LEN; i++)
                grad[i] = (float)((i * 53 + t * 29) % 97 - 48) / 32;
            optim_step(&o, ctx, 0.05, values, grad, optim_squares(&o, ctx, grad));
        }
        assert_int_equal(o.step, GOLDEN_OPTIM_STEPS);
        memcpy(want, g->values, sizeof(want));
        for (int i = 0; i < GOLDEN_OPTIM_LEN; i++)
            if (!(fabsf(values[i] - want[i]) <= 1e-6f * (1 + fabsf(want[i]))))
                fail_msg("optimiser %zu (%s), value %d: %.9g, expected %.9g", k, g->type, i,
                         (double)values[i], (double)want[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_the_schedule),  cmocka_unit_test(rates_are_those_of_torch),
        cmocka_unit_test(rates_between_steps),        cmocka_unit_test(a_cosine_ends_with_the_run),
        cmocka_unit_test(updates_are_those_of_torch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
