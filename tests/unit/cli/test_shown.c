/* test_shown.c - what others wrote reaches no terminal as a command. */
#include "test.h"

#include "cli/shown.h"

#include <stdlib.h>
#include <string.h>

static void expect(const char *text, size_t len, const char *want)
{
    cleanup_buf struct buf out = BUF_INIT(1000);

    shown_line(&out, (struct sv){text, len});
    assert_string_equal(buf_str(&out), want);
}

#define SHOWN(text, want) expect("" text "", sizeof(text) - 1, want)

static void test_lines(void **state)
{
    (void)state;
    SHOWN("plain", "plain");
    SHOWN("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5");
    SHOWN("\x1b[31mred\x1b[0m", "red");
    SHOWN("\x1b]0;title\x07text", "text");
    SHOWN("\x1b]8;;http://x\x1b\\link", "link");
    SHOWN("\x1b[2J\x1b[1;1Hgone", "gone");
    SHOWN("\x1b", "");
    SHOWN("\x1b[31", "");
    SHOWN("\x1b]never ends", "");
    SHOWN("\x1b"
          "cx",
          "x"); /* RIS, a reset */
    SHOWN(" 10%\r 20%\r 30%\r\n", " 30%");
    SHOWN("a\tb\x07"
          "c\x7f"
          "d\0e",
          "a b?c?d?e");
    SHOWN("\xc2\x9b"
          "31m",
          "?31m"); /* CSI as a C1 character */
    SHOWN("\x9b"
          "31m",
          "?31m");
    SHOWN("\xe2\x80\xaeturned", "?turned"); /* right to left */
    SHOWN("\xd8\x9c \xc2\xad \xef\xbb\xbf \xe2\x80\x8b \xe2\x80\xa8 \xe2\x81\xa0 \xe2\x81\xaf \xe1\xa0\x8e "
          "\xf3\xa0\x80\xa1",
          "? ? ? ? ? ? ? ? ?"); /* nothing is seen of these */
    SHOWN("cut \xe2\x82", "cut ??");
    SHOWN("\xc0\xaf\xed\xa0\x80\xf5", "??????");
}

static void test_columns(void **state)
{
    (void)state;
    assert_int_equal(shown_columns(sv_from("abc")), 3);
    assert_int_equal(shown_columns(sv_from("\xe6\xbc\xa2\xe5\xad\x97")), 4);
    assert_int_equal(shown_columns(sv_from("e\xcc\x81")), 1);
    assert_int_equal(shown_fit(sv_from("\xe6\xbc\xa2\xe5\xad\x97"), 3), 3);
    assert_int_equal(shown_fit(sv_from("abc"), 9), 3);
    assert_int_equal(shown_fit(sv_from("abc"), 0), 0);
}

static void test_text(void **state)
{
    char out[16];

    (void)state;
    shown_text(out, sizeof(out), "a\x1b[2J\r\nb");
    assert_string_equal(out, "a b");
    shown_text(out, sizeof(out), "0123456789abc\xe6\xbc\xa2");
    assert_string_equal(out, "0123456789abc");
    shown_text(out, sizeof(out), NULL);
    assert_string_equal(out, "");
}

static void test_name(void **state)
{
    static const char *const CASES[][2] = {{"a b\\c.py", "a b\\c.py"},
                                           {"caf\xc3\xa9", "caf\xc3\xa9"},
                                           {"a\r\n\tb", "a\\x0d\\x0a\\x09"
                                                        "b"},
                                           {"\x1b[2J\x7f", "\\x1b[2J\\x7f"},
                                           {"\xc2\x9b\xff", "\\xc2\\x9b\\xff"},
                                           {"\xe2\x80\xae"
                                            "gpj",
                                            "\\xe2\\x80\\xae"
                                            "gpj"},
                                           {"", ""}};
    cleanup_arena struct arena a = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
        assert_string_equal(shown_name(&a, CASES[i][0]), CASES[i][1]);
}

/* Whatever the bytes are, what comes out has no control character, and the same text comes out of it again. */
static void test_any_bytes(void **state)
{
    unsigned dice = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        static const char LIKELY[] = "\x1b[]\\;m\r\x07\x9b\xc2\xe2\x80\xae\xf0 a1";
        cleanup_buf struct buf once = BUF_INIT(1000);
        cleanup_buf struct buf twice = BUF_INIT(1000);
        char text[24];
        for (size_t i = 0; i < sizeof(text); i++) {
            dice = dice * 1103515245 + 12345;
            text[i] = dice >> 16 & 1 ? LIKELY[(dice >> 17) % (sizeof(LIKELY) - 1)] : (char)(dice >> 17);
        }
        shown_line(&once, (struct sv){text, sizeof(text)});
        for (size_t i = 0; i < once.len; i++)
            assert_true((unsigned char)once.data[i] >= 0x20 && once.data[i] != 0x7f);
        shown_line(&twice, (struct sv){buf_str(&once), once.len});
        assert_string_equal(buf_str(&once), buf_str(&twice));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines), cmocka_unit_test(test_columns),   cmocka_unit_test(test_text),
        cmocka_unit_test(test_name),  cmocka_unit_test(test_any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
