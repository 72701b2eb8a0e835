/* test_awake.c - time in which the process was stopped does not pass. */
#include "rendezvous/awake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_a_stopped_process(void **state)
{
    struct awake a = {0};

    (void)state;
    assert_int_equal(awake_now(&a, 1000), 1000);
    a.due_ms = 1500;
    assert_int_equal(awake_now(&a, 1200), 1200);                 /* an event came earlier */
    assert_int_equal(awake_now(&a, 1500 + AWAKE_LATE_MS), 1600); /* a busy machine */
    assert_int_equal(awake_now(&a, 60000), 1600);
    assert_int_equal(awake_now(&a, 60010), 1610);
    a.due_ms = 2000;
    assert_int_equal(awake_now(&a, 60600), 2100);
    assert_int_equal(awake_now(&a, 70500), 2200); /* again */
    assert_int_equal(a.stopped_ms, 68300);
}

/* Under load each wait ends late: most of the time counts all the same, and some of it however late they are. */
static void test_a_process_that_is_always_late(void **state)
{
    static const struct {
        int64_t wait_ms, late_ms, least_ms;
    } rows[] = {
        {200, 101, 60000 * 3 / 4}, {200, 150, 60000 * 3 / 4}, {0, 150, 60000 / 2}, {0, 1000, 60000 / 20}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct awake a = {0};
        int64_t now_ms = 1000;
        for (int64_t mono_ms = 1000; mono_ms < 61000; mono_ms += rows[i].wait_ms + rows[i].late_ms) {
            const int64_t before_ms = now_ms;
            now_ms = awake_now(&a, mono_ms);
            assert_true(now_ms >= before_ms);
            a.due_ms = now_ms + rows[i].wait_ms;
        }
        assert_true(now_ms - 1000 >= rows[i].least_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_stopped_process),
                                       cmocka_unit_test(test_a_process_that_is_always_late)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
