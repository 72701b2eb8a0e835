/* test_base64.c - RFC 4648's own examples, both ways, and what is refused. */
#include "kube/auth/base64.h"

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
        cleanup_buf struct buf plain = BUF_INIT(64);
        assert_int_equal(base64_encode(rows[i][0], strlen(rows[i][0]), &coded, &err), 0);
        assert_string_equal(buf_str(&coded), rows[i][1]);
        assert_int_equal(base64_decode(rows[i][1], &plain, &err), 0);
        assert_string_equal(buf_str(&plain), rows[i][0]);
    }
}

static void test_every_byte_survives(void **ctx)
{
    unsigned char all[256];
    cleanup_buf struct buf coded = BUF_INIT(400);
    cleanup_buf struct buf plain = BUF_INIT(256);
    struct err err;

    (void)ctx;
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    assert_int_equal(base64_encode(all, sizeof(all), &coded, &err), 0);
    assert_int_equal(base64_decode(buf_str(&coded), &plain, &err), 0);
    assert_int_equal(plain.len, sizeof(all));
    assert_memory_equal(plain.data, all, sizeof(all));
}

static void test_refused(void **ctx)
{
    static const char *const rows[] = {"***", "QUJD=", "QU=D", "Q", "QQ===", "QQ=A", "QUJ\xc3"};
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(64);
        assert_int_equal(base64_decode(rows[i], &out, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_null(strstr(err.msg, rows[i]));
    }
    cleanup_buf struct buf small = BUF_INIT(3);
    assert_int_equal(base64_decode("QUJDRA==", &small, &err), -1);
    assert_int_equal(base64_encode("abc", 3, &small, &err), -1);
    cleanup_buf struct buf lines = BUF_INIT(64);
    assert_int_equal(base64_decode("QUJD\r\nRA==\n", &lines, &err), 0);
    assert_string_equal(buf_str(&lines), "ABCD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_every_byte_survives),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
