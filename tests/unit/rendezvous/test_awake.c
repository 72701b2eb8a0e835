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
    assert_int_equal(awake_now(&a, 60000), 1500);
    assert_int_equal(awake_now(&a, 60010), 1510);
    a.due_ms = 2000;
    assert_int_equal(awake_now(&a, 60500), 2000);
    assert_int_equal(awake_now(&a, 70500), 2000); /* again */
    assert_int_equal(a.stopped_ms, 68500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_stopped_process)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
