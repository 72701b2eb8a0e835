/* test_lines.c - the same lines come out however the bytes are cut. */
#include "common/json.h"
#include "kube/gather.h"
#include "test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    char text[4096];
};

static int on_line(void *ctx, struct sv line, struct skim *over, struct err *err)
{
    struct seen *s = ctx;

    (void)err;
    if (over)
        strcat(strcat(s->text, "over "), json_str(over->tree, "type") ? json_str(over->tree, "type") : "");
    else
        strncat(s->text, line.p, line.len);
    strcat(s->text, "|");
    return 0;
}

static const char stream[] = "{\"a\":1}\n\r\n\n{\"b\":\"z\\u00e4\xc3\xa4\"}\r\n{\"c\":3}\n";
static const char expected[] = "{\"a\":1}|{\"b\":\"z\\u00e4\xc3\xa4\"}|{\"c\":3}|";

/* 1 byte at a time, all at once, and random pieces of up to 15 bytes. */
static void test_pieces(void **ctx)
{
    (void)ctx;
    for (uint32_t round = 0; round < 500; round++) {
        struct gather l;
        struct seen seen = {0};
        struct err err;
        uint32_t state = round;
        size_t len = strlen(stream);
        gather_init(&l, 64, true);
        for (size_t at = 0, n; at < len; at += n) {
            state = state * 1664525U + 1013904223U;
            n = round == 0 ? 1 : round == 1 ? len : state >> 28;
            n = n < len - at ? n : len - at;
            assert_int_equal(gather_lines(&l, (struct sv){stream + at, n}, on_line, &seen, &err), 0);
        }
        assert_string_equal(seen.text, expected);
        gather_release(&l);
    }
}

static void test_too_long(void **ctx)
{
    struct gather l;
    struct seen seen = {0};
    struct err err;

    (void)ctx;
    gather_init(&l, 8, true);
    assert_int_equal(gather_lines(&l, sv_from("12345678\n"), on_line, &seen, &err), 0);
    assert_int_equal(gather_lines(&l, sv_from("123456789\n"), on_line, &seen, &err), 0);
    assert_int_equal(gather_lines(&l, sv_from("{\"type\""), on_line, &seen, &err), 0);
    assert_int_equal(gather_lines(&l, sv_from(":\"ADDE"), on_line, &seen, &err), 0);
    assert_int_equal(l.text.cap, 0);
    assert_int_equal(gather_lines(&l, sv_from("D\"}\nb\n"), on_line, &seen, &err), 0);
    assert_string_equal(seen.text, "12345678|over |over ADDED|b|");
    gather_release(&l);
}

/* Then it is no line any more. */
static void test_no_end(void **ctx)
{
    static char piece[1 << 20];
    struct gather l;
    struct seen seen = {0};
    struct err err;
    int n = 0;

    (void)ctx;
    gather_init(&l, 8, true);
    while (gather_lines(&l, (struct sv){piece, sizeof(piece)}, on_line, &seen, &err) == 0)
        n++;
    assert_int_equal(n, GATHER_MAX_BYTES / (1 << 20));
    assert_int_equal(err.kind, ERR_INVALID);
    gather_release(&l);
}

/* A line of megabytes in small pieces costs its own length, not its square; and the memory goes back. */
static void test_long_line_in_pieces(void **ctx)
{
    struct gather l;
    struct seen seen = {0};
    struct err err;
    static char piece[1000];
    size_t total = 0;

    (void)ctx;
    gather_init(&l, 3 << 20, true);
    memset(piece, 'x', sizeof(piece));
    for (int i = 0; i < 3000; i++, total += sizeof(piece))
        assert_int_equal(gather_lines(&l, (struct sv){piece, sizeof(piece)}, on_line, &seen, &err), 0);
    assert_int_equal(l.text.len, total);
    gather_reset(&l);
    assert_true(l.text.cap <= 16384);
    gather_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_no_end),
        cmocka_unit_test(test_long_line_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
