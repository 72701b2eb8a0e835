/* test_answers.c - what the launcher serves, the operator understands: each number arrives as it was, and what is not known
 * stays so. The two share no code. */
#include "launcher/progress/answer.h"
#include "operator/api/jobprogress.h"
#include "test.h"

#include <math.h>

#define WALL_MS INT64_C(1795514400000)

static enum jobprogress_verdict served(const struct answer *a, struct jobprogress_answer *ret)
{
    cleanup_buf struct buf text = BUF_INIT(ANSWER_BYTES);

    answer_progress(a, &text);
    return jobprogress_answer((struct sv){buf_str(&text), text.len}, "1f0c-2a", 3, ret);
}

static struct answer nothing(void)
{
    struct answer a = {.job_uid = "1f0c-2a", .attempt = 3, .straggler_rank = -1};

    progress_init(&a.progress);
    return a;
}

static void test_nothing_known(void **state)
{
    struct jobprogress_answer got;
    struct answer a = nothing();

    (void)state;
    assert_int_equal(served(&a, &got), JOBPROGRESS_OK);
    assert_true(got.progress.time_ms == 0);
    assert_int_equal(got.slow_rank, -1);
    a.progress.wall_ms = WALL_MS;
    assert_int_equal(served(&a, &got), JOBPROGRESS_OK);
    assert_true(got.progress.time_ms == WALL_MS);
    assert_true(got.progress.step == -1 && got.progress.total_steps == -1 && got.progress.epoch == -1 &&
                got.progress.total_epochs == -1 && got.progress.percent == -1 && got.progress.eta_s == -1);
    assert_true(isnan(got.progress.loss) && isnan(got.progress.samples_per_second));
}

static void test_all_known(void **state)
{
    static const int64_t COUNTS[] = {0, 1, 1200, 123456789012345, PROGRESS_COUNT_MAX};
    struct jobprogress_answer got;
    struct answer a = nothing();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++) {
        a.progress.wall_ms = WALL_MS;
        a.progress.now = (struct progress_seen){.step = COUNTS[i],
                                                .total_steps = COUNTS[i],
                                                .epoch = COUNTS[i],
                                                .total_epochs = COUNTS[i],
                                                .percent = 24.75,
                                                .loss = -0.531,
                                                .samples_per_second = 812.5};
        a.progress.eta_ms = 532900;
        a.straggler_rank = 3;
        a.straggler_ratio = 1.42;
        assert_int_equal(served(&a, &got), JOBPROGRESS_OK);
        assert_true(got.progress.step == COUNTS[i] && got.progress.total_steps == COUNTS[i] &&
                    got.progress.epoch == COUNTS[i] && got.progress.total_epochs == COUNTS[i]);
        assert_int_equal(got.progress.percent, 24);
        assert_int_equal(got.progress.eta_s, 532);
        assert_true(got.progress.loss == -0.531 && got.progress.samples_per_second == 812.5);
        assert_int_equal(got.slow_rank, 3);
        assert_true(got.slow_ratio == 1.42);
    }
}

static void test_of_others(void **state)
{
    struct jobprogress_answer got;
    struct answer a = nothing();

    (void)state;
    a.attempt = 2;
    assert_int_equal(served(&a, &got), JOBPROGRESS_OTHERS);
    a = nothing();
    a.job_uid[0] = '\0'; /* outside of a job */
    assert_int_equal(served(&a, &got), JOBPROGRESS_OTHERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_all_known),
        cmocka_unit_test(test_of_others),
    };

    return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
