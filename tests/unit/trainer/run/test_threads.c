/* test_threads.c - what a rank takes of the pod. */
#include "test.h"

#include "trainer/run/threads.h"

static void shares(void **state)
{
    (void)state;
    assert_int_equal(threads_per_rank(NULL, 8, 2, 256), 4);
    assert_int_equal(threads_per_rank(NULL, 2, 4, 256), 1);
    assert_int_equal(threads_per_rank(NULL, 8, 0, 256), 8);
    assert_int_equal(threads_per_rank(NULL, 1000, 1, 256), 256);
    assert_int_equal(threads_per_rank("3", 8, 2, 256), 3);
    assert_int_equal(threads_per_rank("4,2", 8, 2, 256), 4);
    assert_int_equal(threads_per_rank("1", 8, 1, 256), 1);
    assert_int_equal(threads_per_rank("junk", 8, 2, 256), 4);
    assert_int_equal(threads_per_rank("0", 8, 2, 256), 4);
    assert_int_equal(threads_per_rank("99999", 8, 2, 256), 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
