/* test_bars.c - progress bars, sparklines and spans of time. */
#include "test.h"

#include "cli/shown.h"
#include "cli/span.h"
#include "cli/watch/bars.h"

#include <math.h>

static void test_progress(void **state)
{
    char buf[BARS_BYTES];

    (void)state;
    assert_string_equal(bars_progress(0, 4, false, buf), "....");
    assert_string_equal(bars_progress(50, 4, false, buf), "##..");
    assert_string_equal(bars_progress(99, 4, false, buf), "###.");
    assert_string_equal(bars_progress(100, 4, false, buf), "####");
    assert_string_equal(bars_progress(50, 3, true, buf), "\xe2\x96\x88\xe2\x96\x8c\xc2\xb7");
    for (int width = -1; width < BARS_WIDTH_MAX + 9; width++)
        for (int64_t percent = -5; percent < 110; percent++) {
            const int want = width < 0 ? 0 : width > BARS_WIDTH_MAX ? BARS_WIDTH_MAX : width;
            assert_int_equal(shown_columns(sv_from(bars_progress(percent, width, true, buf))), want);
        }
}

static void test_spark(void **state)
{
    static const double FALLS[] = {8, 6, 4, 2, 1}, ODD[] = {NAN, 1, INFINITY, 2, -INFINITY};
    static const double HUGE_ONES[] = {-1e308, 1e308, 0}, SAME[] = {3, 3, 3};
    char buf[BARS_BYTES];

    (void)state;
    assert_string_equal(bars_spark(FALLS, 5, 8, false, buf), "#+-._");
    assert_string_equal(bars_spark(FALLS, 5, 2, false, buf), "#_"); /* scaled to what is shown */
    assert_string_equal(bars_spark(FALLS, 5, 5, true, buf),
                        "\xe2\x96\x88\xe2\x96\x86\xe2\x96\x84\xe2\x96\x82\xe2\x96\x81");
    assert_string_equal(bars_spark(ODD, 5, 8, false, buf), " _ # ");
    assert_string_equal(bars_spark(HUGE_ONES, 3, 8, false, buf), "_#=");
    assert_string_equal(bars_spark(SAME, 3, 8, false, buf), "===");
    assert_string_equal(bars_spark(SAME, 0, 8, false, buf), "");
    assert_string_equal(bars_spark(SAME, 3, 0, false, buf), "");
}

static void test_spans(void **state)
{
    static const struct {
        int64_t seconds;
        const char *want;
    } ROWS[] = {{-5, "<1m"},     {59, "<1m"},       {60, "1m"},        {3599, "59m"},
                {3600, "1h"},    {7320, "2h2m"},    {86399, "23h59m"}, {86400, "1d"},
                {90000, "1d1h"}, {8640000, "100d"}, {8727000, "101d"}};
    char buf[SPAN_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
        assert_string_equal(span_text(ROWS[i].seconds, false, buf), ROWS[i].want);
    assert_string_equal(span_text(-5, true, buf), "0s");
    assert_string_equal(span_text(59, true, buf), "59s");
    assert_string_equal(span_text(60, true, buf), "1m");
}

static void test_parse_spans(void **state)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } ROWS[] = {{"0", 0},      {"90", 90},      {"90s", 90},
                {"5m", 300},   {"1h30m", 5400}, {"1d2h3m4s", 93784},
                {"", -1},      {"m", -1},       {"5x", -1},
                {"-5", -1},    {"1m1h", -1},    {"1m1m", -1},
                {"1m5", -1},   {"1.5h", -1},    {"9999999999999999999", -1},
                {"3651d", -1}, {"5 m", -1},     {"3650d1s", -1}};
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        int64_t got = -1;
        const int rc = span_parse("timeout", ROWS[i].text, &got, &err);
        if (got != ROWS[i].want || (rc == 0) != (ROWS[i].want >= 0))
            fail_msg("\"%s\": %lld", ROWS[i].text, (long long)got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_spark),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_parse_spans),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
