/* test_logs_tee.c - bytes in any pieces, whole prefixed lines out. */
#include "common/cleanup.h"
#include "launcher/logs_tee.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_lines_in_any_pieces(void **state)
{
    static const char in[] = "one\ntwo\n\nthree";

    (void)state;
    for (size_t step = 1; step < sizeof(in); step++) {
        cleanup_buf struct buf line = BUF_INIT(100), sink = BUF_INIT(1000);
        for (size_t at = 0; at < sizeof(in) - 1; at += step) {
            size_t n = sizeof(in) - 1 - at < step ? sizeof(in) - 1 - at : step;
            logs_tee_take(&line, &sink, "[a]:", in + at, n);
        }
        assert_string_equal(buf_str(&sink), "[a]:one\n[a]:two\n[a]:\n");
        logs_tee_flush(&line, &sink, "[a]:");
        assert_string_equal(buf_str(&sink), "[a]:one\n[a]:two\n[a]:\n[a]:three\n");
        logs_tee_flush(&line, &sink, "[a]:");
        assert_int_equal(sink.len, strlen("[a]:one\n[a]:two\n[a]:\n[a]:three\n"));
    }
}

static void test_line_longer_than_the_buffer(void **state)
{
    cleanup_buf struct buf line = BUF_INIT(4), sink = BUF_INIT(1000);

    (void)state;
    logs_tee_take(&line, &sink, ">", "abcdefghij\nk\n", 13);
    assert_string_equal(buf_str(&sink), ">abcd\n>efgh\n>ij\n>k\n");
}

static void test_hidden(void **state)
{
    cleanup_buf struct buf line = BUF_INIT(4);

    (void)state;
    logs_tee_take(&line, NULL, ">", "abcdefghij\nk", 12);
    logs_tee_flush(&line, NULL, ">");
    assert_int_equal(line.len, 0);
}

/* Whatever the room says can be taken: nothing is lost, even when every byte is a line. */
static void test_room_is_enough(void **state)
{
    static const char prefix[] = "[default12]:";

    (void)state;
    for (size_t max = 0; max < 300; max++) {
        cleanup_buf struct buf line = BUF_INIT(64), sink = BUF_INIT(max);
        size_t room = logs_tee_room(&line, &sink, prefix), want = room * (sizeof(prefix) - 1 + 1);
        for (size_t i = 0; i < room; i++)
            logs_tee_take(&line, &sink, prefix, "\n", 1);
        assert_int_equal(sink.len, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_in_any_pieces),
        cmocka_unit_test(test_line_longer_than_the_buffer),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_room_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
