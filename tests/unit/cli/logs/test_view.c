/* test_view.c - a line of `kubectl ptj logs` as it is printed. */
#include "test.h"

#include "cli/logs/view.h"

static void expect(const struct view *v, int place, const char *time, const char *text, const char *want)
{
    const struct merge_line line = {.stream = place, .time = sv_from(time), .text = sv_from(text)};
    cleanup_buf struct buf out = BUF_INIT(1000);

    view_line(&out, v, "node-0", &line);
    assert_string_equal(buf_str(&out), want);
}

static void test_lines(void **state)
{
    const struct view pipe = {.times = false}, times = {.times = true};
    const struct view terminal = {.colours = true, .safe = true};

    (void)state;
    expect(&pipe, 0, "T", "10%\r20%\x1b[2J", "[node-0] 10%\r20%\x1b[2J\n");
    expect(&times, 0, "T", "text", "[node-0] T text\n");
    expect(&times, 0, "", "unable to read", "[node-0] unable to read\n");
    expect(&terminal, 0, "T", "10%\r20%\x1b[2J", "\x1b[36m[node-0]\x1b[0m 20%\n");
    expect(&terminal, 13, "T", "", "\x1b[33m[node-0]\x1b[0m \n");
}

/* The whole line counts, and nothing behind it. */
static void test_wants(void **state)
{
    static const char BYTES[] = "a\0b\xff"
                                "cd";
    regex_t end, any;

    (void)state;
    assert_int_equal(regcomp(&end,
                             "b\xff"
                             "c$",
                             REG_EXTENDED | REG_NOSUB),
                     0);
    assert_int_equal(regcomp(&any, "d|^b", REG_EXTENDED | REG_NOSUB), 0);
    assert_true(view_wants(&end, (struct sv){BYTES, 5}));
    assert_false(view_wants(&end, (struct sv){BYTES, 6}));
    assert_false(view_wants(&any, (struct sv){BYTES, 5}));
    assert_false(view_wants(&any, (struct sv){"", 0}));
    assert_true(view_wants(NULL, (struct sv){"", 0}));
    regfree(&end);
    regfree(&any);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_wants)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
