/* test_cpus.c - quotas and shares. */
#include "test.h"

#include "trainer/cpus.h"

static void quotas(void **state)
{
    (void)state;
    assert_int_equal(cpus_quota("200000 100000\n"), 2);
    assert_int_equal(cpus_quota("150000 100000"), 2);
    assert_int_equal(cpus_quota("1000 100000"), 1);
    assert_int_equal(cpus_quota("max 100000\n"), 0);
    assert_int_equal(cpus_quota("-1 100000"), 0);
    assert_int_equal(cpus_quota("200000"), 0);
    assert_int_equal(cpus_quota("200000 0"), 0);
    assert_int_equal(cpus_quota(""), 0);
    assert_int_equal(cpus_quota("99999999999999999999 1"), 0);
}

static void shares(void **state)
{
    (void)state;
    assert_int_equal(cpus_threads(NULL, 8, 2, 256), 4);
    assert_int_equal(cpus_threads(NULL, 2, 4, 256), 1);
    assert_int_equal(cpus_threads(NULL, 8, 0, 256), 8);
    assert_int_equal(cpus_threads(NULL, 1000, 1, 256), 256);
    assert_int_equal(cpus_threads("3", 8, 2, 256), 3);
    assert_int_equal(cpus_threads("4,2", 8, 2, 256), 4);
    assert_int_equal(cpus_threads("1", 8, 1, 256), 1);
    assert_int_equal(cpus_threads("junk", 8, 2, 256), 4);
    assert_int_equal(cpus_threads("0", 8, 2, 256), 4);
    assert_int_equal(cpus_threads("99999", 8, 2, 256), 256);
    assert_true(cpus_available() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas),
        cmocka_unit_test(shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
