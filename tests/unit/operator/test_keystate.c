/* test_keystate.c - what is remembered between two passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/keystate.h"

#include <string.h>

static void test_own_status_is_awaited(void **state)
{
    struct keystate *k = keystate_new("u");
    struct apply_result r = {.ok = true, .status_written = true, .status_version = "100"};

    (void)state;
    assert_false(keystate_job_is_old(k, "99"));
    keystate_learn(k, &r, 1, 0, 5000, 50);
    assert_true(keystate_job_is_old(k, "99"));
    assert_false(keystate_job_is_old(k, "100"));
    assert_false(keystate_job_is_old(k, "101"));
    assert_true(keystate_job_is_old(k, "abc"));
    assert_int_equal(k->status_written_ms, 5000);
    assert_int_equal(k->expected_until_ms, 5050);
    keystate_free(k);
}

static void refuse(struct keystate *k, int64_t generation, int64_t wall_ms)
{
    struct apply_result r = {.ok = false, .problem = {.kind = PROBLEM_REFUSED, .child = CHILD_POD}};

    strcpy(r.problem_name, "j-node-0");
    strcpy(r.problem_message, "exceeded quota");
    keystate_learn(k, &r, generation, 0, wall_ms, 0);
}

static void test_problems_back_off(void **state)
{
    static const int64_t WANT_MS[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct keystate *k = keystate_new("u");
    struct apply_result good = {.ok = true};
    int64_t wall_ms = 1000000;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(WANT_MS); i++) {
        refuse(k, 1, wall_ms);
        struct plan_problem p = keystate_problem(k, 1);
        assert_int_equal(p.kind, PROBLEM_REFUSED);
        assert_int_equal(p.retry_ms, wall_ms + WANT_MS[i]);
        assert_string_equal(p.message, "exceeded quota");
        wall_ms += WANT_MS[i];
    }
    assert_int_equal(keystate_problem(k, 2).kind, PROBLEM_NONE);
    keystate_learn(k, &good, 1, 0, wall_ms - 30000, 0); /* a pass that only told of it */
    assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_REFUSED);
    keystate_learn(k, &good, 1, 0, wall_ms, 0); /* the one that tried again */
    assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_NONE);
    refuse(k, 1, wall_ms);
    assert_int_equal(keystate_problem(k, 1).retry_ms, wall_ms + 1000);
    keystate_free(k);
}

static void test_waiting_in_vain_takes_longer(void **state)
{
    static const int64_t WANT_MS[] = {5000, 10000, 20000, 40000, 60000, 60000};
    struct keystate *k = keystate_new("u");
    struct apply_result written = {.ok = true, .status_written = true, .status_version = "5"};

    (void)state;
    for (int again = 0; again < 2; again++) {
        keystate_expired(k, false);
        for (size_t i = 0; i < ARRAY_LEN(WANT_MS); i++) {
            keystate_learn(k, &written, 0, 0, 0, 1000);
            assert_int_equal(k->expected_until_ms, 1000 + WANT_MS[i]);
            keystate_expired(k, true);
        }
    }
    keystate_free(k);
}

static void test_gone_pods_are_remembered_until_used(void **state)
{
    struct keystate *k = keystate_new("u");
    const char *gone[] = {"a", "b"};
    struct apply_result found = {.ok = true, .gone_uids = gone, .n_gone_uids = 2};
    struct apply_result unwritten = {.ok = false};
    struct apply_result written = {.ok = true, .status_written = true, .status_version = "5"};

    (void)state;
    keystate_learn(k, &found, 0, 0, 0, 0);
    assert_int_equal(k->n_gone_uids, 2);
    keystate_learn(k, &unwritten, 0, 2, 0, 0);
    assert_int_equal(k->n_gone_uids, 2);
    keystate_learn(k, &written, 0, 2, 0, 0);
    assert_int_equal(k->n_gone_uids, 0);
    keystate_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_status_is_awaited),
        cmocka_unit_test(test_problems_back_off),
        cmocka_unit_test(test_waiting_in_vain_takes_longer),
        cmocka_unit_test(test_gone_pods_are_remembered_until_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
