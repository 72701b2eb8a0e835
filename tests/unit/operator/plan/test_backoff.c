/* test_backoff.c - when the next attempt is due. */
#include "common/cleanup.h"
#include "operator/plan/restart.h"
#include "test.h"

enum { S = 1000, MIN = 60 * S };

/* n failures, each `apart` after the delay that the one before earned; the due time of the next attempt. */
static int64_t delay_after(int n, int64_t apart_ms, const char *reason)
{
    struct failure all[JOBSTATUS_FAILURES_MAX] = {0};
    struct jobstatus st = {.failures = all, .start_ms = 1};
    int64_t now = 1000 * S;

    for (int i = 0; i < n; i++) {
        if (st.n_failures == JOBSTATUS_FAILURES_MAX) {
            for (int k = 1; k < JOBSTATUS_FAILURES_MAX; k++)
                all[k - 1] = all[k];
            st.n_failures--;
        }
        all[st.n_failures++] = (struct failure){.reason = reason, .time_ms = now, .attempt = i};
        st.last_failure = &all[st.n_failures - 1];
        st.attempt = i + 1;
        int64_t due = restart_due_ms(&st);
        if (due < now)
            due = now;
        if (i == n - 1)
            return due - now;
        now = due + apart_ms;
    }
    return -1;
}

static void test_doubles(void **state)
{
    static const int64_t WANT_S[] = {0, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600, 600};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(WANT_S); i++)
        assert_int_equal(delay_after((int)i + 1, 5 * S, "Killed"), WANT_S[i] * S);
}

static void test_what_forgives(void **state)
{
    (void)state;
    assert_int_equal(delay_after(6, S, "EvictionByEvictionAPI"), 0);
    assert_int_equal(delay_after(5, 10 * MIN, "Killed"), 0);
    assert_int_equal(delay_after(2, 10 * MIN - 1, "Killed"), 10 * S);
}

/* startTime has seconds, too: a failure in its second belongs to this run, one before it to the run before a pause. */
static void test_a_pause_ends_the_delay(void **state)
{
    struct failure all[] = {{.reason = "Killed", .time_ms = 5000, .attempt = 0},
                            {.reason = "Killed", .time_ms = 6000, .attempt = 1}};
    struct jobstatus st = {.attempt = 2, .last_failure = &all[1], .failures = all, .n_failures = 2};

    (void)state;
    st.start_ms = 6000;
    assert_int_equal(restart_due_ms(&st), 16000);
    st.start_ms = 6001;
    assert_int_equal(restart_due_ms(&st), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_what_forgives),
        cmocka_unit_test(test_a_pause_ends_the_delay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
