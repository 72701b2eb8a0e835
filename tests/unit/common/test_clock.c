/* test_clock.c - RFC 3339 both ways, against known dates and against the C library. */
#include "common/clock.h"
#include "test.h"

#include <string.h>
#include <time.h>

static void test_known_times(void **state)
{
    char out[CLOCK_RFC3339_BYTES];
    int64_t ms = 0;

    (void)state;
    clock_rfc3339(0, false, out);
    assert_string_equal(out, "1970-01-01T00:00:00Z");
    clock_rfc3339(1709210096789, true, out);
    assert_string_equal(out, "2024-02-29T12:34:56.789Z");
    clock_rfc3339(-1, true, out);
    assert_string_equal(out, "1969-12-31T23:59:59.999Z");
    assert_true(clock_parse_rfc3339("2024-02-29T12:34:56.789123Z", &ms));
    assert_int_equal(ms, 1709210096789);
    assert_true(clock_parse_rfc3339("2024-02-29T14:34:56+02:00", &ms));
    assert_int_equal(ms, 1709210096000);
    assert_true(clock_parse_rfc3339("2024-02-29T12:34:56.000000Z", &ms));
    assert_int_equal(ms, 1709210096000);
    assert_true(clock_parse_rfc3339("2024-02-29t12:34:56.7z", &ms));
    assert_int_equal(ms, 1709210096700);
    assert_true(clock_parse_rfc3339("2024-02-29T07:04:56.789123456-05:30", &ms));
    assert_int_equal(ms, 1709210096789);
}

static void test_round_trip_against_libc(void **state)
{
    (void)state;
    /* A step that is no multiple of a day walks through every hour; 1902 to 2200 covers leap centuries. */
    for (int64_t s = -2145916800; s < 7258118400; s += 8651357) {
        char out[CLOCK_RFC3339_BYTES];
        char want[CLOCK_RFC3339_BYTES];
        time_t t = (time_t)s;
        struct tm tm;
        int64_t back = 0;
        gmtime_r(&t, &tm);
        strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%SZ", &tm);
        clock_rfc3339(s * 1000, false, out);
        assert_string_equal(out, want);
        assert_true(clock_parse_rfc3339(out, &back));
        assert_int_equal(back, s * 1000);
    }
}

static void test_garbage_is_refused(void **state)
{
    const char *const bad[] = {"",
                               "2024",
                               "2024-02-29",
                               "2024-02-29T12:34:56",
                               "2024-13-01T00:00:00Z",
                               "2024-02-29T24:00:00Z",
                               "2024-02-29T12:34:56.Z",
                               "2024-02-29T12:34:56,7Z",
                               "2024-02-29T12:34:56+24:00",
                               "2024-02-29T12:34:56+02:60",
                               "2024-02-29T12:34:56-2:00",
                               "2024-02-29T12:34:61Z",
                               "2024-02-00T12:34:56Z",
                               "0000-02-29T12:34:56Z",
                               " 2024-02-29T12:34:56Z",
                               "+024-02-29T12:34:56Z",
                               "2024-02-29T12:34:56Zx",
                               "2024-02-29T12:34:56+0200",
                               "2024-02-29 12:34:56Z"};
    int64_t ms = 5;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(clock_parse_rfc3339(bad[i], &ms));
    assert_int_equal(ms, 5);
}

static void test_monotonic_clock_is_one(void **state)
{
    struct clock c = clock_system();
    int64_t before = clock_mono_ms(), between = c.mono_ms(c.ctx), after = clock_mono_ms();

    (void)state;
    assert_true(before <= between && between <= after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_times),
        cmocka_unit_test(test_round_trip_against_libc),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_monotonic_clock_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
