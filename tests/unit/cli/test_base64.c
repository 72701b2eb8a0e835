/* test_base64.c - RFC 4648's own examples. */
#include "cli/submit/base64.h"

#include "test.h"

#include <string.h>

static void test_vectors(void **ctx)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"ab", "YWI="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xfb\xf0", "//vw"},
    };
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf coded = BUF_INIT(64);
        assert_int_equal(base64_encode(rows[i][0], strlen(rows[i][0]), &coded, &err), 0);
        assert_string_equal(buf_str(&coded), rows[i][1]);
        cleanup_buf struct buf plain = BUF_INIT(64);
        assert_int_equal(base64_decode(rows[i][1], &plain, &err), 0);
        assert_string_equal(buf_str(&plain), rows[i][0]);
    }
    cleanup_buf struct buf small = BUF_INIT(3);
    assert_int_equal(base64_encode("abc", 3, &small, &err), -1);
    assert_int_equal(base64_decode("Zm9vYg==", &small, &err), -1);
}

static void test_what_is_none(void **ctx)
{
    static const char *const rows[] = {
        "Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "=", "====", "Zm9?", "Zg=v", "Zm9v\x80"};
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf plain = BUF_INIT(64);
        if (base64_decode(rows[i], &plain, &err) == 0)
            fail_msg("%s: expected an error", rows[i]);
    }
    cleanup_buf struct buf plain = BUF_INIT(64);
    assert_int_equal(base64_decode("Zm\r\n 9v\n", &plain, &err), 0);
    assert_string_equal(buf_str(&plain), "foo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_what_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
