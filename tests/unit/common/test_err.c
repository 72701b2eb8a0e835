/* test_err.c - kinds survive wrapping, long messages are cut, never overrun. */
#include "common/err.h"
#include "common/text.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void test_set(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(err_set(&err, ERR_INVALID, "port %d: expected 1..65535", 0), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.msg, "port 0: expected 1..65535");
}

static void test_errno(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(err_errno(&err, ERR_FATAL, ENOSPC, "write %s", "a.pt"), -1);
    assert_int_equal(err.code, ENOSPC);
    assert_string_equal(err.msg, "write a.pt: No space left on device");
    errno = EINTR;
    err_errno(&err, ERR_FATAL, ENAMETOOLONG, "%0*d", 2 * ERR_MSG_BYTES,
              7); /* a long path leaves room for the reason */
    assert_non_null(strstr(err.msg, "0…: File name too long"));
    assert_int_equal(errno, EINTR);
}

static void test_memory(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(err_memory(&err, "no memory for %d rows", 3), -1);
    assert_int_equal(err.kind, ERR_FATAL);
    assert_int_equal(err.code, ENOMEM);
    assert_string_equal(err.msg, "no memory for 3 rows");
}

static void test_what_another_try_may_find(void **state)
{
    static const int LACKS[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOBUFS};
    static const int OTHERS[] = {0, ENOENT, EACCES, ENOSPC, EINTR, 404, 503};
    struct err err = {.kind = ERR_FATAL};

    (void)state;
    for (size_t i = 0; i < sizeof(LACKS) / sizeof(LACKS[0]); i++) {
        err.code = LACKS[i];
        assert_true(err_is_shortage(&err));
    }
    for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++) {
        err.code = OTHERS[i];
        assert_false(err_is_shortage(&err));
    }
}

static void test_wrap_keeps_kind(void **state)
{
    struct err err;

    (void)state;
    err_errno(&err, ERR_NOT_FOUND, ENOENT, "open");
    assert_int_equal(err_wrap(&err, "read %s", "token"), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_int_equal(err.code, ENOENT);
    assert_string_equal(err.msg, "read token: open: No such file or directory");
}

static void test_long_message_is_cut(void **state)
{
    struct err err;
    char big[2 * ERR_MSG_BYTES];

    (void)state;
    memset(big, 'x', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    err_set(&err, ERR_FATAL, "%s", big);
    assert_string_equal(err.msg + ERR_MSG_BYTES - 7, "xxx…");
    err_wrap(&err, "%s", big);
    assert_string_equal(err.msg + ERR_MSG_BYTES - 7, "xxx…");
}

/* Between two words, and never inside a character. */
static void test_a_cut_is_told(void **state)
{
    static const struct {
        size_t size;
        const char *want;
    } rows[] = {{40, "what can be said"},
                {17, "what can be said"},
                {16, "what can be…"},
                {15, "what can be…"},
                {14, "what can…"}};
    char out[64];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int n = snprintf(out, rows[i].size, "%s", "what can be said");
        text_ellipsis(out, rows[i].size, (size_t)n);
        assert_string_equal(out, rows[i].want);
    }
    int n = snprintf(out, 12, "%s", "ääääääää");
    text_ellipsis(out, 12, (size_t)n);
    assert_string_equal(out, "ääää…");
}

static void test_every_kind_has_a_name(void **state)
{
    (void)state;
    for (int k = ERR_NONE; k <= ERR_FATAL; k++)
        assert_string_not_equal(err_kind_name((enum err_kind)k), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_what_another_try_may_find),
        cmocka_unit_test(test_wrap_keeps_kind),
        cmocka_unit_test(test_long_message_is_cut),
        cmocka_unit_test(test_a_cut_is_told),
        cmocka_unit_test(test_every_kind_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
