/* test_version.c - which of two resourceVersions is newer. */
#include "test.h"

#include "common/cleanup.h"
#include "kube/version.h"

static void test_newer(void **state)
{
    static const struct {
        const char *version, *than;
        bool newer;
    } ROWS[] = {
        {"10", "9", true},
        {"9", "10", false},
        {"10", "10", false},
        {"1", "0", true},
        {"", "9", false},
        {"10", "", false},
        {"a", "9", false},
        {"10", "a", false},
        {"-1", "-2", false},
        {"10", "99999999999999999999", false},
        {"9223372036854775807", "9223372036854775806", true},
        {"99999999999999999999", "9", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        assert_int_equal(version_is_newer(ROWS[i].version, ROWS[i].than), ROWS[i].newer);
}

static void test_reached(void **state)
{
    (void)state;
    assert_true(version_is_reached("10", "9"));
    assert_true(version_is_reached("10", "10"));
    assert_false(version_is_reached("9", "10"));
    assert_true(version_is_reached("a", "a"));
    assert_false(version_is_reached("a", "9"));
    assert_false(version_is_reached("", "9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_newer), cmocka_unit_test(test_reached)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
