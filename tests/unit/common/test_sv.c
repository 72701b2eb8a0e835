/* test_sv.c - splitting and strict number parsing. */
#include "common/sv.h"
#include "test.h"

static void test_split(void **state)
{
    struct sv rest = sv_from("a=1,,b");
    struct sv part;

    (void)state;
    assert_true(sv_next(&rest, ',', &part) && sv_eq(part, "a=1"));
    assert_true(sv_next(&rest, ',', &part) && sv_eq(part, ""));
    assert_true(sv_next(&rest, ',', &part) && sv_eq(part, "b"));
    assert_false(sv_next(&rest, ',', &part));
    rest = sv_from("x,");
    assert_true(sv_next(&rest, ',', &part) && sv_eq(part, "x"));
    assert_true(sv_next(&rest, ',', &part) && sv_eq(part, ""));
    assert_false(sv_next(&rest, ',', &part));
}

static void test_trim_and_prefix(void **state)
{
    (void)state;
    assert_true(sv_eq(sv_trim(sv_from(" \t a b\n")), "a b"));
    assert_true(sv_eq(sv_trim(sv_from("   ")), ""));
    assert_true(sv_starts(sv_from("--nnodes=1"), "--"));
    assert_false(sv_starts(sv_from("-"), "--"));
}

static void test_integers(void **state)
{
    int64_t v = 42;

    (void)state;
    assert_true(sv_i64(sv_from("-7"), -10, 10, &v));
    assert_int_equal(v, -7);
    const char *const bad[] = {"",    " 1", "1 ", "1.0", "0x10", "11", "-11", "9223372036854775808",
                               "one", "1e1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(sv_i64(sv_from(bad[i]), -10, 10, &v));
        assert_int_equal(v, -7);
    }
    assert_true(sv_i64(sv_from("9223372036854775807"), INT64_MIN, INT64_MAX, &v));
    assert_false(sv_i64((struct sv){"1\0002", 3}, 0, 100, &v));
}

static void test_doubles(void **state)
{
    double v = 0;

    (void)state;
    assert_true(sv_f64(sv_from("1e-3"), &v) && v > 0.00099 && v < 0.00101);
    assert_false(sv_f64(sv_from("inf"), &v));
    assert_false(sv_f64(sv_from("nan"), &v));
    assert_false(sv_f64(sv_from("1e999"), &v));
    assert_false(sv_f64(sv_from("1x"), &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_trim_and_prefix),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
