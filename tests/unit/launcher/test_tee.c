/* test_tee.c - bytes in any pieces, whole prefixed lines out. */
#include "common/cleanup.h"
#include "launcher/tee.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void release(struct tee_line *line)
{
    buf_release(&line->text);
}
#define cleanup_tee __attribute__((cleanup(release)))

/* `len` bytes in pieces of `step`. */
static void take_in_pieces(struct tee_line *line, const struct tee_out *out, const char *in, size_t len,
                           size_t step)
{
    for (size_t at = 0; at < len; at += step)
        tee_take(line, out, in + at, len - at < step ? len - at : step);
}

/* Shown or not. */
static void test_line_longer_than_the_buffer(void **state)
{
    (void)state;
    for (int shown = 0; shown < 2; shown++) {
        cleanup_tee struct tee_line line = {.text = BUF_INIT(4)};
        cleanup_buf struct buf sink = BUF_INIT(1000);
        const struct tee_out out = {.sink = shown ? &sink : NULL, .prefix = ">", .filtered = -1};
        tee_take(&line, &out, "abcdefghij\nk\nl", 14);
        assert_string_equal(buf_str(&sink), shown ? ">abcd\n>efgh\n>ij\n>k\n" : "");
        tee_flush(&line, &out);
        assert_int_equal(line.text.len, 0);
    }
}

/* What a filter finds goes to the file too, whole, in whatever pieces it came. */
static void test_filtered(void **state)
{
    static const char in[] = "an apple\nnothing\n\n4 oranges, \0 too\na pear\nlast orange";
    static const char want[] = "[a]:an apple\n[a]:4 oranges, \0 too\n[a]:last orange\n";
    static const char *const filters[] = {"apple", "orange", NULL};

    (void)state;
    for (size_t step = 1; step < sizeof(in); step++) {
        cleanup_tee struct tee_line line = {.text = BUF_INIT(100)};
        cleanup_close int fd = memfd_create("filtered", MFD_CLOEXEC);
        const struct tee_out out = {.prefix = "[a]:", .filters = filters, .filtered = fd};
        char got[200];
        assert_true(fd >= 0);
        take_in_pieces(&line, &out, in, sizeof(in) - 1, step);
        tee_flush(&line, &out);
        assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(want) - 1);
        assert_memory_equal(got, want, sizeof(want) - 1);
    }
}

/* A full disk costs the lines, not the stream. */
static void test_filtered_into_a_full_file(void **state)
{
    static const char *const filters[] = {"x", NULL};
    cleanup_tee struct tee_line line = {.text = BUF_INIT(100)};
    cleanup_buf struct buf sink = BUF_INIT(100);
    cleanup_close int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const struct tee_out out = {.sink = &sink, .prefix = "", .filters = filters, .filtered = fd};

    (void)state;
    assert_true(fd >= 0);
    tee_take(&line, &out, "x\ny\n", 4);
    assert_string_equal(buf_str(&sink), "x\ny\n");
}

/* A bar's states are lines, whatever the pieces; "\r\n" ends one line. */
static void test_bars_are_lines(void **state)
{
    static const char in[] = "one\n\ntwo\r\n\r  0%|\r 50%|#\r\r100%|##\nwait\rx\n\r\n99\r";
    static const char want[] =
        "[a]:one\n[a]:\n[a]:two\n[a]:  0%|\n[a]: 50%|#\n[a]:100%|##\n[a]:wait\n[a]:x\n[a]:\n";
    static const char *const filters[] = {"%|#", NULL};
    static const char filtered[] = "[a]: 50%|#\n[a]:100%|##\n";

    (void)state;
    for (size_t step = 1; step < sizeof(in); step++) {
        cleanup_tee struct tee_line line = {.text = BUF_INIT(100)};
        cleanup_buf struct buf sink = BUF_INIT(1000);
        cleanup_close int fd = memfd_create("filtered", MFD_CLOEXEC);
        const struct tee_out out = {.sink = &sink, .prefix = "[a]:", .filters = filters, .filtered = fd};
        char got[200] = "";
        take_in_pieces(&line, &out, in, strlen(in), step);
        assert_string_equal(buf_str(&sink), want);
        tee_flush(&line, &out);
        tee_flush(&line, &out);
        assert_string_equal(buf_str(&sink) + strlen(want), "[a]:99\n");
        assert_true(pread(fd, got, sizeof(got) - 1, 0) >= 0);
        assert_string_equal(got, filtered);
    }
}

/* Whatever the room says can be taken: nothing is lost, even when every byte is a line. */
static void test_room_is_enough(void **state)
{
    static const char *const in[] = {"a\rb\r\r\nccc\r\n\n\rd", "\n"};
    static const char prefix[] = "[default12]:";
    enum { BYTES = 40 };

    (void)state;
    for (size_t max = 0; max < 1400; max++) {
        const char *text = in[max % 2];
        cleanup_tee struct tee_line line = {.text = BUF_INIT(8)}, same = {.text = BUF_INIT(8)};
        cleanup_buf struct buf sink = BUF_INIT(max / 2), all = BUF_INIT(100000);
        const struct tee_out out = {.sink = &sink, .prefix = prefix, .filtered = -1};
        struct tee_out ample = out;
        ample.sink = &all;
        for (size_t at = 0; at < BYTES;) {
            char bytes[BYTES];
            size_t n = tee_room(&line, &sink, prefix);
            n = n < BYTES - at ? n : BYTES - at;
            for (size_t i = 0; i < n; i++)
                bytes[i] = text[(at + i + max) % strlen(text)];
            tee_take(&line, &out, bytes, n);
            tee_take(&same, &ample, bytes, n);
            assert_string_equal(buf_str(&sink), buf_str(&all));
            at += n ? n : BYTES;
            buf_clear(&sink);
            buf_clear(&all);
        }
    }
    /* So much waits for the console that the longest line still fits, not more. */
    cleanup_tee struct tee_line line = {.text = BUF_INIT(600)};
    cleanup_buf struct buf sink = BUF_INIT(1000);
    assert_true(tee_room(&line, &sink, prefix) * (strlen(prefix) + 1) <= 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_longer_than_the_buffer),
        cmocka_unit_test(test_filtered),
        cmocka_unit_test(test_filtered_into_a_full_file),
        cmocka_unit_test(test_bars_are_lines),
        cmocka_unit_test(test_room_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
