/* test_paint.c - the difference of two frames brings a terminal from one to the other, and writes no more than that. */
#include "test.h"

#include "cli/watch/paint.h"
#include "vt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t show(struct paint *p, struct vt *v, const char *text)
{
    cleanup_buf struct buf frame = BUF_INIT(TABLE_BYTES_MAX);
    cleanup_buf struct buf out = BUF_INIT(TABLE_BYTES_MAX);
    struct err err;

    assert_int_equal(buf_puts(&frame, text, &err), 0);
    paint_frame(p, &frame, v->rows, &out);
    vt_feed(v, buf_str(&out), out.len);
    assert_string_equal(v->unknown, "");
    assert_false(v->in_update);
    return out.len;
}

static void expect(const struct vt *v, const char *want)
{
    char *got = vt_text(v);

    assert_string_equal(got, want);
    free(got);
}

static void test_differences(void **state)
{
    struct paint p = PAINT_INIT;
    struct vt v;

    (void)state;
    vt_init(&v, 10, 4);
    vt_feed(&v, "dirt\r\nhere\r\nand\r\nthere", 22);
    assert_true(show(&p, &v, "title\nrow 1\nrow 2\n") > 0);
    expect(&v, "title\nrow 1\nrow 2");
    assert_int_equal(show(&p, &v, "title\nrow 1\nrow 2\n"), 0);
    const size_t one = show(&p, &v, "title\nrow 1\nROW 2\n");
    assert_true(one < 40);
    expect(&v, "title\nrow 1\nROW 2");
    assert_true(show(&p, &v, "t\nr\n") > 0);
    expect(&v, "t\nr");
    assert_true(show(&p, &v, "0123456789\n0123456789\n0123456789\n0123456789\n") > 0);
    expect(&v, "0123456789\n0123456789\n0123456789\n0123456789");
    assert_int_equal(v.cleared, 0);
    paint_forget(&p);
    vt_feed(&v, "\x1b[2;1Hothers", 12);
    assert_true(show(&p, &v, "0123456789\n0123456789\n0123456789\n0123456789\n") > 40);
    expect(&v, "0123456789\n0123456789\n0123456789\n0123456789");
    paint_release(&p);
}

/* Any frame after any other. */
static void test_random_frames(void **state)
{
    struct paint p = PAINT_INIT;
    struct vt v;
    unsigned dice = 7;

    (void)state;
    vt_init(&v, 12, 6);
    for (int round = 0; round < 3000; round++) {
        char frame[200] = "", want[200];
        size_t at = 0;
        dice = dice * 1103515245 + 12345;
        const int lines = 1 + (int)(dice >> 16) % 6;
        for (int i = 0; i < lines; i++) {
            dice = dice * 1103515245 + 12345;
            at += (size_t)snprintf(frame + at, sizeof(frame) - at, "%.*s\n", 1 + (int)(dice >> 16) % 12,
                                   (dice >> 20) & 1 ? "abcdefghijkl" : "mnopqrstuvwx");
        }
        (void)show(&p, &v, frame);
        snprintf(want, sizeof(want), "%.*s", (int)at - 1, frame);
        expect(&v, want);
        if (round % 50 == 0)
            paint_forget(&p);
    }
    paint_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_random_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
