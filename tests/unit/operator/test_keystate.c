/* test_keystate.c - what is remembered between two passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/keystate.h"

#include <string.h>

static bool learn(struct keystate *k, const struct apply_result *r, int64_t generation, int n_gone_used,
                  int64_t wall_ms, int64_t mono_ms)
{
    return keystate_learn(
        k, r, &(struct keystate_pass){.generation = generation, .n_gone_used = n_gone_used, .took_ms = 10},
        wall_ms, mono_ms);
}

static void test_own_status_is_awaited(void **state)
{
    struct keystate *k = keystate_new("u");
    struct apply_result r = {.ok = true, .status_written = true, .status_version = "100"};

    (void)state;
    assert_false(keystate_job_is_old(k, "99"));
    learn(k, &r, 1, 0, 5000, 50);
    assert_true(keystate_job_is_old(k, "99"));
    assert_false(keystate_job_is_old(k, "100"));
    assert_false(keystate_job_is_old(k, "101"));
    assert_true(keystate_job_is_old(k, "abc"));
    assert_int_equal(k->status_written_ms, 50);
    assert_int_equal(k->expected_until_ms, 5050);
    keystate_free(k);
}

/* A write that leaves the job at its version changed nothing, and the same one would not either. */
static void test_a_status_that_does_not_stay(void **state)
{
    struct keystate *k = keystate_new("u");
    struct apply_result r = {.ok = true, .status_written = true, .status_version = "100"};

    (void)state;
    (void)keystate_learn(k, &r, &(struct keystate_pass){.generation = 1, .took_ms = 10, .version = "99"},
                         5000, 50);
    assert_int_equal(k->status_written_ms, 50);
    (void)keystate_learn(k, &r, &(struct keystate_pass){.generation = 1, .took_ms = 10, .version = "100"},
                         5000, 50);
    assert_int_equal(k->status_written_ms, 50 + 300000);
    keystate_free(k);
}

/* A progress has a time of its own: others than it are written as if it had not been, also where it does not stay. */
static void test_progress_keeps_its_own_time(void **state)
{
    struct keystate *k = keystate_new("u");
    struct apply_result r = {.ok = true, .status_written = true, .status_version = "100"};
    struct keystate_pass pass = {
        .version = "100", .progressed = true, .progress_only = true, .slow_rank = true};

    (void)state;
    (void)keystate_learn(k, &r, &pass, 5000, 50);
    assert_int_equal(k->status_written_ms, 0);
    assert_int_equal(k->progress.written_ms, 5000); /* a time to come would count as a clock set back */
    assert_true(k->progress.in_vain);
    assert_int_equal(k->progress.slow_told_ms, 5000);
    pass = (struct keystate_pass){.version = "99", .progressed = true};
    (void)keystate_learn(k, &r, &pass, 6000, 50);
    assert_int_equal(k->status_written_ms, 50);
    assert_int_equal(k->progress.written_ms, 6000);
    assert_false(k->progress.in_vain);
    pass = (struct keystate_pass){.version = "99"};
    (void)keystate_learn(k, &r, &pass, 7000, 50);
    assert_int_equal(k->progress.written_ms, 6000);
    r.ok = r.status_written = false;
    pass = (struct keystate_pass){.version = "99", .progressed = true, .slow_rank = true};
    (void)keystate_learn(k, &r, &pass, 8000, 50);
    assert_int_equal(k->progress.written_ms, 6000);
    assert_int_equal(k->progress.slow_told_ms, 5000);
    keystate_free(k);
}

static void refuse(struct keystate *k, int64_t generation, int64_t mono_ms)
{
    struct apply_result r = {.ok = false, .retry_after_ms = -1, .err.code = 403};

    r.problem = (struct plan_problem){PROBLEM_REFUSED, CHILD_POD, "j-node-0", "exceeded quota", 0};
    assert_true(learn(k, &r, generation, 0, 0, mono_ms));
}

static void test_problems_back_off(void **state)
{
    static const int64_t WANT_MS[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct keystate *k = keystate_new("u");
    struct apply_result good = {.ok = true};
    int64_t mono_ms = 1000000;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(WANT_MS); i++) {
        refuse(k, 1, mono_ms);
        struct plan_problem p = keystate_problem(k, 1);
        assert_int_equal(p.kind, PROBLEM_REFUSED);
        assert_int_equal(p.retry_ms, mono_ms + WANT_MS[i]);
        assert_string_equal(p.message, "exceeded quota");
        mono_ms += WANT_MS[i];
    }
    assert_int_equal(keystate_problem(k, 2).kind, PROBLEM_NONE);
    (void)learn(k, &good, 1, 0, 0, mono_ms - 30000); /* a pass that only told of it */
    assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_REFUSED);
    (void)learn(k, &good, 1, 0, 0, mono_ms); /* the one that tried again */
    assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_NONE);
    refuse(k, 1, mono_ms);
    assert_int_equal(keystate_problem(k, 1).retry_ms, mono_ms + 1000);
    keystate_free(k);
}

/* What happens to a create: how it ended, and whether it is told then. */
struct create_row {
    enum problem_kind kind;
    int code, pods_created;
    int64_t took_ms, retry_after_ms;
    bool told;
    int64_t delay_ms; /* when told */
};

static void play(const struct create_row *rows, size_t n)
{
    struct keystate *k = keystate_new("u");
    int64_t mono_ms = 1000000;

    for (size_t i = 0; i < n; i++) {
        const struct create_row *row = &rows[i];
        struct apply_result r = {.ok = row->kind == PROBLEM_NONE,
                                 .err.code = row->code,
                                 .pods_created = row->pods_created,
                                 .retry_after_ms = row->retry_after_ms ? row->retry_after_ms : -1};
        r.problem = (struct plan_problem){row->kind, CHILD_POD, "j-node-0", "words", 0};
        const struct keystate_pass pass = {.generation = 1, .took_ms = row->took_ms};
        if (keystate_learn(k, &r, &pass, 0, mono_ms) != row->told)
            fail_msg("row %zu: told is %d", i, !row->told);
        struct plan_problem p = keystate_problem(k, 1);
        if (row->told && (p.kind != row->kind || p.retry_ms != mono_ms + row->delay_ms))
            fail_msg("row %zu: kind %d, after %lld ms", i, p.kind, (long long)(p.retry_ms - mono_ms));
        mono_ms = p.retry_ms > mono_ms ? p.retry_ms : mono_ms;
    }
    keystate_free(k);
}

/* Once and quickly: just again. From the second time in a row, or at once when it took long, it is told. */
static void test_a_failed_create(void **state)
{
    static const struct create_row TWICE[] = {
        {PROBLEM_FAILED, 500, 0, 10, 0, false, 0},      {PROBLEM_FAILED, 500, 0, 10, 0, true, 1000},
        {PROBLEM_FAILED, 500, 0, 10, 0, true, 2000},    {PROBLEM_FAILED, 503, 0, 10, 9000, true, 9000},
        {PROBLEM_FAILED, 503, 0, 10, 3000, true, 8000}, {PROBLEM_NONE, 0, 1, 10, 0, false, 0},
        {PROBLEM_FAILED, 500, 0, 10, 0, false, 0},
    };
    static const struct create_row SLOW[] = {
        {PROBLEM_FAILED, 0, 0, 1001, 0, true, 1000},
        {PROBLEM_REFUSED, 403, 0, 10, 0, true, 2000},
    };
    static const struct create_row PROGRESS[] = {
        {PROBLEM_FAILED, 500, 0, 10, 0, false, 0},   {PROBLEM_FAILED, 500, 3, 10, 0, false, 0},
        {PROBLEM_FAILED, 500, 3, 10, 0, false, 0},   {PROBLEM_FAILED, 500, 0, 10, 0, true, 1000},
        {PROBLEM_FAILED, 500, 0, 10, 0, true, 2000}, {PROBLEM_FAILED, 500, 2, 10, 0, true, 1000},
    };

    (void)state;
    play(TWICE, ARRAY_LEN(TWICE));
    play(SLOW, ARRAY_LEN(SLOW));
    play(PROGRESS, ARRAY_LEN(PROGRESS));
}

static const char *words_after(struct keystate *k, int code, const char *words, int64_t generation,
                               int64_t mono_ms)
{
    struct apply_result r = {.ok = false, .retry_after_ms = -1, .err.code = code};

    r.problem = (struct plan_problem){PROBLEM_FAILED, CHILD_POD, "j-node-0", words, 0};
    (void)keystate_learn(k, &r, &(struct keystate_pass){.generation = generation, .took_ms = 2000}, 0,
                         mono_ms);
    return keystate_problem(k, generation).message;
}

/* It lasts while nothing is tried, since pods of an earlier attempt have to go first. */
static void test_a_problem_lasts_while_creates_wait(void **state)
{
    struct keystate *k = keystate_new("u");
    struct apply_result ok = {.ok = true, .retry_after_ms = -1};

    (void)state;
    assert_string_equal(words_after(k, 400, "unknown field", 1, 0), "unknown field");
    (void)keystate_learn(k, &ok, &(struct keystate_pass){.generation = 1, .creates_wait = true}, 0, 90000);
    assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_FAILED);
    (void)keystate_learn(k, &ok, &(struct keystate_pass){.generation = 1}, 0, 90000);
    assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_NONE);
    keystate_free(k);
}

/* Else each try would cost a write of the status. */
static void test_words_that_change_are_told_once(void **state)
{
    struct keystate *k = keystate_new("u");

    (void)state;
    assert_string_equal(words_after(k, 500, "at 10:00", 1, 0), "at 10:00");
    assert_string_equal(words_after(k, 500, "at 10:01", 1, 60000), "at 10:00");
    assert_string_equal(words_after(k, 429, "slowly", 1, 61000), "slowly");
    assert_string_equal(words_after(k, 429, "mended", 2, 62000), "mended");
    assert_string_equal(words_after(k, 429, "later", 2, 661999), "mended");
    assert_string_equal(words_after(k, 429, "later", 2, 662000), "later");
    keystate_free(k);
}

/* What goes soon is waited for in silence; what does not go at all is told. */
static void test_waiting_for_something_to_go(void **state)
{
    struct keystate *k = keystate_new("u");
    struct apply_result wait = {.wait = true, .retry_after_ms = -1};
    struct apply_result good = {.ok = true};

    (void)state;
    wait.problem = (struct plan_problem){PROBLEM_NAME_CONFLICT, CHILD_POD, "j-node-0", "still there", 0};
    for (int again = 0; again < 2; again++) {
        for (int i = 1; i < 60; i++)
            assert_false(learn(k, &wait, 1, 0, 0, i * 1000));
        assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_NONE);
        assert_true(learn(k, &wait, 1, 0, 0, 60000));
        assert_int_equal(keystate_problem(k, 1).kind, PROBLEM_NAME_CONFLICT);
        (void)learn(k, &good, 1, 0, 0, 120000);
    }
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
            (void)learn(k, &written, 0, 0, 0, 1000);
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
    (void)learn(k, &found, 0, 0, 0, 0);
    assert_int_equal(k->n_gone_uids, 2);
    (void)learn(k, &unwritten, 0, 2, 0, 0);
    assert_int_equal(k->n_gone_uids, 2);
    (void)learn(k, &written, 0, 2, 0, 0);
    assert_int_equal(k->n_gone_uids, 0);
    keystate_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_status_is_awaited),
        cmocka_unit_test(test_a_status_that_does_not_stay),
        cmocka_unit_test(test_progress_keeps_its_own_time),
        cmocka_unit_test(test_problems_back_off),
        cmocka_unit_test(test_a_failed_create),
        cmocka_unit_test(test_words_that_change_are_told_once),
        cmocka_unit_test(test_a_problem_lasts_while_creates_wait),
        cmocka_unit_test(test_waiting_for_something_to_go),
        cmocka_unit_test(test_waiting_in_vain_takes_longer),
        cmocka_unit_test(test_gone_pods_are_remembered_until_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
