/* test_clocks.c - clocks that differ: a node's or the API server's is ahead of the operator's, or the operator's steps back. What
 * the operator waits for comes as soon as with equal clocks.
 */
#include "lab.h"
#include "test.h"

static const int64_t AHEAD_S[] = {0, 5, 20, 120, 600, 3600};

enum { SLACK_MS = 6000, HOUR_MS = 3600000, MINUTES_MS = 300000 };

static bool next_attempt(struct lab *l)
{
    return lab_status_number(l, "attempt") > 0;
}

static int rank_1_fails(int attempt, int index)
{
    (void)attempt;
    return index == 1 ? 1 : LAB_RUNS;
}

static bool failed(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Failed");
}

/* A node's clock, or the API server's, makes no difference to how long it takes, which is longer than over_ms. */
static void check(bool node, const char *job, int (*script)(int attempt, int index),
                  bool (*done)(struct lab *l), int64_t over_ms)
{
    int64_t first_ms = 0;

    for (size_t i = 0; i < ARRAY_LEN(AHEAD_S); i++) {
        struct lab l;
        lab_start_direct(&l, script, 1);
        *(node ? &l.node_ahead_ms : &l.server_ahead_ms) = AHEAD_S[i] * 1000;
        fake_set_time(l.server, lab_wall_ms(&l) + l.server_ahead_ms);
        lab_put(&l, LAB_JOB, job);
        int64_t took_ms = lab_until(&l, done);
        first_ms = i ? first_ms : took_ms;
        if (took_ms < first_ms - SLACK_MS || took_ms > first_ms + SLACK_MS)
            fail_msg("a clock is %lld s ahead: %lld ms, with equal clocks %lld ms", (long long)AHEAD_S[i],
                     (long long)took_ms, (long long)first_ms);
        lab_stop(&l);
    }
    assert_true(first_ms > over_ms);
}

/* Rank 1 fails, rank 0 hangs: it is waited for evidence for half a minute, by the first failure's time. */
static void test_a_failure_is_judged_in_time(void **state)
{
    (void)state;
    check(true, LAB_TWO, rank_1_fails, failed, 30000);
}

static void test_a_start_deadline_passes_in_time(void **state)
{
    (void)state;
    check(false, LAB_SPEC("'runPolicy':{'startDeadlineSeconds':300},", "2"), lab_one_pending, next_attempt,
          300000);
}

/* The operator's clock is set back by five minutes, or an hour: what is written at most once a second, and creates that wait for
 * their next try, do not wait for so long. */
static void test_a_step_back(void **state)
{
    struct lab *l = lab_begin(state, lab_pending);

    lab_put(l, LAB_JOB, LAB_SPEC("", "2"));
    lab_until(l, lab_settled);
    l->script = lab_one_pending;
    l->back_ms = MINUTES_MS;
    assert_in_range(lab_until_status(l, "ready", "1/2"), 0, 60000);
}

static void test_a_step_back_while_a_pod_is_refused(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_refuse(l->server, "POST", "/pods", 403);
    lab_put(l, LAB_JOB, LAB_SPEC("", "2"));
    lab_until_status(l, "reason", "PodRefused");
    fake_plan_fault(l->server, NULL);
    l->back_ms = HOUR_MS;
    assert_in_range(lab_until_status(l, "phase", "Running"), 0, 120000);
    lab_pause(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failure_is_judged_in_time),
        cmocka_unit_test(test_a_start_deadline_passes_in_time),
        LAB_TEST(test_a_step_back),
        LAB_TEST(test_a_step_back_while_a_pod_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
