/* test_cut.c - ranks to stages, samples to micro-batches. */
#include "test.h"

#include "trainer/pipeline/cut.h"

static const struct model_spec staged = {.layers = 5, .stages = 3, .stage_first = {0, 2, 4}},
                               whole = {.layers = 5};

static void a_rank_is_a_stage_or_a_copy(void **state)
{
    struct pipeline_position at;
    struct err err;

    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(pipeline_position_of(&staged, rank, 3, &at, &err), 0);
        assert_true(at.stages == 3 && at.stage == rank && at.replicas == 1 && at.replica == 0);
    }
    assert_int_equal(pipeline_position_of(&staged, 0, 1, &at, &err), 0);
    assert_true(at.stages == 1 && at.stage == 0 && at.replicas == 1 && at.replica == 0);
    assert_int_equal(pipeline_position_of(&whole, 3, 4, &at, &err), 0);
    assert_true(at.stages == 1 && at.stage == 0 && at.replicas == 4 && at.replica == 3);
}

static void ranks_that_do_not_fit_are_refused(void **state)
{
    struct pipeline_position at;

    (void)state;
    for (int world = 2; world <= 7; world++) {
        struct err err = {0};
        assert_int_equal(pipeline_position_of(&staged, 0, world, &at, &err), world == 3 ? 0 : -1);
        assert_int_equal(err.kind, world == 3 ? ERR_NONE : ERR_INVALID);
        if (world == 6)
            assert_string_equal(err.msg, "model.stages: 3 stages for 6 ranks, expected 1 or 3 ranks");
    }
}

/* Every sample is in one micro-batch, in order; none is empty; sizes differ by one at most. */
static void micro_batches_cover_a_batch(void **state)
{
    (void)state;
    for (int rows = 1; rows <= 40; rows++)
        for (int asked = 1; asked <= 40; asked++) {
            int n = micro_batches(rows, asked);
            int next = 0;
            assert_int_equal(n, rows < asked ? rows : asked);
            for (int i = 0; i < n; i++) {
                struct micro_batch m = micro_batch_at(rows, asked, i);
                assert_int_equal(m.index, i);
                assert_int_equal(m.first, next);
                assert_true(m.rows == rows / n || m.rows == (rows + n - 1) / n);
                next += m.rows;
                assert_true(m.rows <= micro_batch_at(rows, asked, 0).rows);
            }
            assert_int_equal(next, rows);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_is_a_stage_or_a_copy),
        cmocka_unit_test(ranks_that_do_not_fit_are_refused),
        cmocka_unit_test(micro_batches_cover_a_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
