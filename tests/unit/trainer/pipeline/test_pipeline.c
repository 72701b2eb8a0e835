/* test_pipeline.c - a model in stages among real processes: the same bits as in one piece. */
#include "test.h"

#include "../training.h"

#include <math.h>
#include <signal.h>
#include <string.h>

static void expect_equal_bits(const struct training_shared *a, const struct training_shared *b, int world)
{
    const struct training_trace *want = &a->trace[0];

    assert_true(want->steps > 2);
    assert_int_equal(b->trace[0].weights, want->weights);
    assert_memory_equal(b->trace[0].start, want->start, want->weights * sizeof(float));
    assert_memory_equal(b->trace[0].end, want->end, want->weights * sizeof(float));
    assert_memory_not_equal(want->start, want->end, want->weights * sizeof(float));
    for (int r = 0; r < world; r++) {
        assert_int_equal(b->trace[r].steps, want->steps);
        assert_memory_equal(b->trace[r].loss, want->loss, sizeof(want->loss));
    }
}

/* 80 samples in batches of 24: the last one has 8, and with 10 micro-batches those are not all of one size. */
static void stages_are_one_process(void **state)
{
    static const int micro[] = {1, 3, 10};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(micro); i++) {
        struct training_shared *one = training_run(1, training_usual(3, 24, micro[i]));
        struct training_shared *three = training_run(3, training_usual(3, 24, micro[i]));
        expect_equal_bits(one, three, 3);
        assert_true(one->trace[0].loss[one->trace[0].steps - 1] < one->trace[0].loss[0]);
        assert_int_equal(three->trace[0].stage_len, 4 * 9 + 4);
        assert_int_equal(three->trace[0].stage_len + three->trace[1].stage_len + three->trace[2].stage_len,
                         one->trace[0].stage_len);
        training_free(one);
        training_free(three);
    }
}

/* The norm is one over all stages' gradients. It is added stage by stage: to the last bits. */
static void the_norm_that_is_bounded_is_the_whole_models(void **state)
{
    struct training task = training_usual(3, 24, 3);

    (void)state;
    task.momentum = 0.9;
    struct training_shared *unbounded = training_run(1, task);
    task.clip = 0.2;
    struct training_shared *one = training_run(1, task);
    struct training_shared *three = training_run(3, task);
    const struct training_trace *want = &one->trace[0];
    assert_true(want->steps > 4);
    assert_memory_not_equal(want->loss, unbounded->trace[0].loss, sizeof(want->loss));
    for (int i = 0; i < want->steps; i++)
        assert_true(fabsf(three->trace[2].loss[i] - want->loss[i]) <= 1e-6f * want->loss[i]);
    training_free(unbounded);
    training_free(one);
    training_free(three);
}

/* Messages of 640 KiB: more than a socket holds, in both directions. */
static void messages_may_be_larger_than_a_link_holds(void **state)
{
    struct training task = training_usual(3, 80, 2);

    (void)state;
    task.wide = 4096;
    task.epochs = 3;
    struct training_shared *one = training_run(1, task);
    struct training_shared *three = training_run(3, task);
    expect_equal_bits(one, three, 3);
    training_free(one);
    training_free(three);
}

/* One stage per pod, and two stages that share one. */
static void stages_may_lie_in_other_pods(void **state)
{
    static const struct ranks_layout layouts[] = {{.world = 3, .per_pod = 1}, {.world = 3, .per_pod = 2}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        struct training task = training_usual(0, 80, 2);
        task.wide = 4096;
        task.epochs = 3;
        struct training_shared *whole = training_run(1, task);
        task.stages = 3;
        task.late_ms = 100; /* whoever is done waits: one that leaves takes the others along */
        struct training_shared *pods = training_new(task);
        ranks_run_pods(&layouts[i], training_body, pods);
        expect_equal_bits(whole, pods, layouts[i].world);
        training_free(whole);
        training_free(pods);
    }
}

static void micro_batches_change_the_rounding_alone(void **state)
{
    (void)state;
    struct training_shared *one = training_run(1, training_usual(0, 24, 1));
    struct training_shared *many = training_run(1, training_usual(0, 24, 6));

    assert_int_equal(one->trace[0].steps, many->trace[0].steps);
    for (int i = 0; i < one->trace[0].steps; i++)
        assert_true(fabsf(one->trace[0].loss[i] - many->trace[0].loss[i]) <= 2e-6f * one->trace[0].loss[i]);
    training_free(one);
    training_free(many);
}

static void what_cannot_be_cut_is_refused(void **state)
{
    struct model_spec s = {.input = {.rows = 4, .cols = 4, .channels = 1}, .layers = 2, .stages = 0};
    char run_id[64];
    struct collectives_config cfg = ranks_config(0, 1, run_id);
    struct pipeline_options o = {.spec = &s, .batch = 4, .micro_batches = 5};
    struct pipeline p;
    struct err err = {0};

    (void)state;
    s.layer[0] = layer_spec_of(&layer_flatten, "");
    s.layer[1] = layer_spec_of(&layer_linear, "a");
    s.layer[1].option[0] = 2;
    cleanup_collectives struct collectives *c = collectives_open(&cfg, RANKS_TIMEOUT_MS, &err);
    cleanup_kctx struct kctx *ctx = kctx_make(&(struct kctx_options){0}, &err);
    assert_true(c && ctx);
    o.comm = c;
    o.ctx = ctx;
    assert_int_equal(pipeline_open(&p, &o, &err), -1);
    assert_string_equal(err.msg, "micro_batches: 5, expected 1..1024 and no more than the batch size (4)");
    o.micro_batches = 4;
    assert_int_equal(pipeline_open(&p, &o, &err), 0);
    pipeline_release(&p);
    s.layers = 1;
    assert_int_equal(pipeline_open(&p, &o, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
}

/* A head takes the loss while other micro-batches are still on their way forwards. */
static int head_body(struct collectives *c, void *arg)
{
    struct err err = {0};

    cleanup_kctx struct kctx *ctx = kctx_make(&(struct kctx_options){0}, &err);
    const struct pipeline_options o = {
        .spec = arg, .comm = c, .ctx = ctx, .batch = 4, .timeout_ms = RANKS_TIMEOUT_MS};
    cleanup_pipeline struct pipeline p = {0};
    RANK_CHECK(ctx && pipeline_open(&p, &o, &err) == -1);
    RANK_CHECK(err.kind == ERR_INVALID && strstr(err.msg, "model.stages: stage 0 ends in lm_head"));
    return 0;
}

static void a_head_in_stages_is_refused_by_all(void **state)
{
    struct model_spec s = {.input = {.rows = 4, .cols = 1, .channels = 1, .sequence = true},
                           .layers = 3,
                           .stages = 2,
                           .stage_first = {0, 2}};

    (void)state;
    s.layer[0] = layer_spec_of(&layer_embedding, "a");
    s.layer[0].option[0] = 7; /* vocab */
    s.layer[0].option[1] = 8; /* width */
    s.layer[1] = layer_spec_of(&layer_lm_head, "b");
    s.layer[1].option[0] = 7;
    s.layer[2] = layer_spec_of(&layer_layernorm, "c");
    ranks_run(2, head_body, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_one_process),
        cmocka_unit_test(the_norm_that_is_bounded_is_the_whole_models),
        cmocka_unit_test(messages_may_be_larger_than_a_link_holds),
        cmocka_unit_test(stages_may_lie_in_other_pods),
        cmocka_unit_test(micro_batches_change_the_rounding_alone),
        cmocka_unit_test(what_cannot_be_cut_is_refused),
        cmocka_unit_test(a_head_in_stages_is_refused_by_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
