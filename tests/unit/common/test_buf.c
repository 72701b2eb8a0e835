/* test_buf.c - the bound holds at the exact byte and a refused append changes nothing. */
#include "common/buf.h"
#include "test.h"

#include <string.h>

static void test_limit_is_exact(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(8);
    struct err err;

    (void)state;
    assert_int_equal(buf_append(&b, "12345678", 8, &err), 0);
    assert_int_equal(buf_append(&b, "9", 1, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_string_equal(buf_str(&b), "12345678");
    assert_int_equal(buf_append(&b, "", 0, &err), 0);
}

static void test_printf_at_the_limit(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(4);
    struct err err;

    (void)state;
    assert_int_equal(buf_printf(&b, &err, "%d", 12345), -1);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_printf(&b, &err, "%d", 1234), 0);
    assert_string_equal(buf_str(&b), "1234");
}

static void test_huge_append_does_not_overflow(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(16);
    struct err err;

    (void)state;
    assert_int_equal(buf_puts(&b, "abc", &err), 0);
    assert_int_equal(buf_append(&b, "x", SIZE_MAX, &err), -1);
    assert_string_equal(buf_str(&b), "abc");
}

static void test_consume_and_clear(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(100000);
    struct err err;

    (void)state;
    assert_string_equal(buf_str(&b), "");
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf_printf(&b, &err, "%04d ", i), 0);
    buf_consume(&b, 5 * 9999);
    assert_string_equal(buf_str(&b), "9999 ");
    buf_consume(&b, 5);
    assert_string_equal(buf_str(&b), "");
    buf_clear(&b);
    assert_int_equal(b.len, 0);
}

static void test_one_check_at_the_end(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(6);
    struct err err;

    (void)state;
    buf_puts(&b, "abc", NULL);
    assert_int_equal(buf_check(&b, &err), 0);
    assert_int_equal(buf_printf(&b, NULL, "%d", 1234), -1);
    assert_int_equal(buf_puts(&b, "d", NULL), -1); /* it would fit, and not be in its place */
    assert_int_equal(buf_append(&b, "", 0, NULL), -1);
    assert_string_equal(buf_str(&b), "abc");
    assert_int_equal(buf_check(&b, &err), -1);
    assert_string_equal(err.msg, "more than 6 bytes");
    assert_int_equal(buf_puts(&b, "e", &err), 0); /* who asks each time is not concerned */
    buf_clear(&b);
    assert_int_equal(buf_check(&b, &err), 0);
    assert_int_equal(buf_puts(&b, "f", NULL), 0);
    buf_puts(&b, "1234567", NULL);
    buf_release(&b);
    assert_int_equal(buf_puts(&b, "g", NULL), 0);
    assert_string_equal(buf_str(&b), "g");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_is_exact),
        cmocka_unit_test(test_printf_at_the_limit),
        cmocka_unit_test(test_huge_append_does_not_overflow),
        cmocka_unit_test(test_consume_and_clear),
        cmocka_unit_test(test_one_check_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
