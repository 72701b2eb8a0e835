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
    }
    cleanup_buf struct buf small = BUF_INIT(3);
    assert_int_equal(base64_encode("abc", 3, &small, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
