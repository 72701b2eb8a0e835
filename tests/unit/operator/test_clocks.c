/* test_clocks.c - clocks that differ: a node's or the API server's is ahead of the operator's, or the operator's steps back. What
 * the operator waits for comes as soon as with equal clocks.
 */
#include "lab.h"
#include "test.h"

#include <stdio.h>

static const int64_t AHEAD_S[] = {0, 5, 20, 120, 600, 3600};

enum { SLACK_MS = 6000, HOUR_MS = 3600000, MINUTES_MS = 300000 };

static bool next_attempt(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);

    return json_i64(json_find(job, (const char *[]){"status", NULL}), "attempt", 0) > 0;
}

static int rank_1_fails(int attempt, int index)
{
    (void)attempt;
    return index == 1 ? 1 : LAB_RUNS;
}

static int rank_1_waits(int attempt, int index)
{
    (void)attempt;
    return index == 1 ? LAB_PENDING : LAB_RUNS;
}

static int both_wait(int attempt, int index)
{
    (void)attempt;
    (void)index;
    return LAB_PENDING;
}

/* How long it takes from the job to its end. Asserts that other clocks make no difference. */
static void assert_same(int64_t *first_ms, int64_t took_ms, int64_t ahead_s)
{
    *first_ms = *first_ms ? *first_ms : took_ms;
    if (took_ms < *first_ms - SLACK_MS || took_ms > *first_ms + SLACK_MS)
        fail_msg("a clock is %lld s ahead: %lld ms, with equal clocks %lld ms", (long long)ahead_s,
                 (long long)took_ms, (long long)*first_ms);
}

/* Rank 1 fails, rank 0 hangs: it is waited for evidence for half a minute, by the first failure's time. */
static void test_a_failure_is_judged_in_time(void **state)
{
    int64_t first_ms = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(AHEAD_S); i++) {
        struct lab l;
        lab_start_direct(&l, rank_1_fails, 1);
        l.node_ahead_ms = AHEAD_S[i] * 1000;
        assert_true(fake_put(l.server, LAB_JOB, LAB_SPEC("", "2")));
        lab_until_status(&l, "phase", "Failed");
        assert_same(&first_ms, l.offset_ms, AHEAD_S[i]);
        lab_stop(&l);
    }
    assert_true(first_ms > 30000);
}

static void test_a_start_deadline_passes_in_time(void **state)
{
    int64_t first_ms = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(AHEAD_S); i++) {
        struct lab l;
        lab_start_direct(&l, rank_1_waits, 1);
        l.server_ahead_ms = AHEAD_S[i] * 1000;
        fake_set_time(l.server, lab_wall_ms(&l) + l.server_ahead_ms);
        assert_true(
            fake_put(l.server, LAB_JOB, LAB_SPEC("\"runPolicy\":{\"startDeadlineSeconds\":300},", "2")));
        lab_until(&l, next_attempt);
        assert_same(&first_ms, l.offset_ms, AHEAD_S[i]);
        lab_stop(&l);
    }
    assert_true(first_ms > 300000);
}

/* The operator's clock is set back by five minutes, or an hour: what is written at most once a second, and creates that wait for
 * their next try, do not wait for so long. */
static void test_a_step_back(void **state)
{
    struct lab *l = lab_begin(state, both_wait);

    assert_true(fake_put(l->server, LAB_JOB, LAB_SPEC("", "2")));
    lab_until(l, lab_settled);
    l->script = rank_1_waits;
    l->back_ms = MINUTES_MS;
    int64_t from_ms = l->offset_ms;
    while (!lab_status_is(l, LAB_JOB, "ready", "1/2") && l->offset_ms < from_ms + 60000)
        lab_turn(l);
    assert_true(lab_status_is(l, LAB_JOB, "ready", "1/2"));
}

static void test_a_step_back_while_a_pod_is_refused(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_plan_fault(l->server,
                    &(struct fake_fault_plan){.method = "POST", .path_part = "/pods", .status = 403});
    assert_true(fake_put(l->server, LAB_JOB, LAB_SPEC("", "2")));
    lab_until_status(l, "reason", "PodRefused");
    fake_plan_fault(l->server, NULL);
    l->back_ms = HOUR_MS;
    int64_t from_ms = l->offset_ms;
    while (!lab_status_is(l, LAB_JOB, "phase", "Running") && l->offset_ms < from_ms + 120000)
        lab_turn(l);
    assert_true(lab_status_is(l, LAB_JOB, "phase", "Running"));
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
    lab_until_status(l, "phase", "Paused");
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
