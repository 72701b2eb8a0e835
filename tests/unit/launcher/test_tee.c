/* test_tee.c - bytes in any pieces, whole prefixed lines out, and bars that are redrawn. */
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

/* What a terminal shows: "\n" comes with a return, ESC [ K erases the rest of the line. */
struct screen {
    char lines[40][80];
    size_t row, column;
};

static void show(struct screen *t, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert_true(t->row < ARRAY_LEN(t->lines) && t->column + 1 < sizeof(t->lines[0]));
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            t->column = 0;
            t->row += bytes[i] == '\n';
        } else if (i + 2 < len && memcmp(bytes + i, "\033[K", 3) == 0) {
            memset(t->lines[t->row] + t->column, '\0', sizeof(t->lines[0]) - t->column);
            i += 2;
        } else
            t->lines[t->row][t->column++] = bytes[i];
    }
}

/* Elsewhere than on a terminal a bar's states are lines, whatever the pieces; "\r\n" ends one line. */
static void test_redrawn_as_lines(void **state)
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

/* On a terminal a bar moves with each write, in one line, under its prefix. */
static void test_redrawn_in_place(void **state)
{
    static const char *const writes[][2] = {
        {"\r  0%|", "[a]:  0%|"},
        {"\r 50%|#", "[a]: 50%|#"},
        {"\rx", "[a]:x"},
        {"\n", "[a]:x"},
        {"1\r", "[a]:1"},
        {"2\r", "[a]:2"},
        {"\r", "[a]:2"},
        {"\n", ""},
        {"open", ""},
        {"ed\r", "[a]:opened"},
    };
    cleanup_tee struct tee_line line = {.text = BUF_INIT(100)};
    cleanup_buf struct buf sink = BUF_INIT(1000);
    bool redrawn = false;
    const struct tee_out out = {.sink = &sink, .prefix = "[a]:", .redrawn = &redrawn, .filtered = -1};
    struct screen t = {0};

    (void)state;
    tee_take(&line, &out, "plain\n", 6);
    assert_string_equal(buf_str(&sink), "[a]:plain\n"); /* as ever, until something is redrawn */
    assert_string_equal(tee_erase(&redrawn), "");
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        buf_clear(&sink);
        tee_take(&line, &out, writes[i][0], strlen(writes[i][0]));
        show(&t, buf_str(&sink), sink.len);
        const bool ended = strchr(writes[i][0], '\n') != NULL;
        assert_string_equal(t.lines[t.row - (ended && writes[i][1][0])], writes[i][1]);
    }
    assert_int_equal(t.row, 2);
    assert_string_equal(t.lines[0], "[a]:x");
    assert_string_equal(t.lines[1], "[a]:");
    show(&t, tee_erase(&redrawn), strlen(tee_erase(&redrawn)));
    show(&t, "torchrun\n", 9); /* the launcher's own words */
    assert_string_equal(t.lines[2], "torchrun");
}

/* A long text that comes in small pieces behind "\r" is not output with each of them. */
static void test_long_unfinished_text(void **state)
{
    enum { BYTES = 20000 };
    cleanup_tee struct tee_line line = {.text = BUF_INIT(65536)};
    cleanup_buf struct buf sink = BUF_INIT(1 << 20);
    static char in[BYTES + 2] = "\r";
    bool redrawn = false;
    const struct tee_out out = {.sink = &sink, .prefix = "[a]:", .redrawn = &redrawn, .filtered = -1};

    (void)state;
    memset(in + 1, 'x', BYTES);
    take_in_pieces(&line, &out, "x", 1, 1);
    take_in_pieces(&line, &out, in, strlen(in), 10);
    assert_true(sink.len > 300); /* as long as it is short it is shown */
    assert_true(sink.len < BYTES);
    buf_clear(&sink);
    tee_take(&line, &out, "\r", 1);
    assert_true(sink.len > BYTES && sink.len < BYTES + 20);
    buf_clear(&sink);
    tee_take(&line, &out, "\n", 1);
    assert_true(sink.len > BYTES && sink.len < BYTES + 20);
}

/* The bars of two ranks, one longer, and their lines: every line stands whole on the terminal, in whatever pieces. */
static void test_bars_and_lines_of_two_ranks(void **state)
{
    static const char *const in[2] = {"begin\n\r 10%|#\r 20%|##\rlost a step\n\r100%|##########\nend\n",
                                      "\r 1%|\r 2%|\nshort\n\r 3%|a rather long bar\r\n"};
    static const char *const want[] = {"0:begin", "0:lost a step", "0:100%|##########",      "0:end",
                                       "1: 2%|",  "1:short",       "1: 3%|a rather long bar"};

    (void)state;
    for (size_t step = 1; step < 12; step++) {
        struct tee_line lines[2] = {{.text = BUF_INIT(100)}, {.text = BUF_INIT(100)}};
        cleanup_buf struct buf sink = BUF_INIT(4000);
        bool redrawn = false;
        struct screen t = {0};
        size_t at[2] = {0};
        while (at[0] < strlen(in[0]) || at[1] < strlen(in[1]))
            for (int i = 0; i < 2; i++) {
                const struct tee_out out = {
                    .sink = &sink, .prefix = i ? "1:" : "0:", .redrawn = &redrawn, .filtered = -1};
                const size_t left = strlen(in[i]) - at[i],
                             n = left < step + (size_t)i ? left : step + (size_t)i;
                tee_take(&lines[i], &out, in[i] + at[i], n);
                at[i] += n;
            }
        show(&t, buf_str(&sink), sink.len);
        assert_int_equal(t.row, ARRAY_LEN(want));
        assert_string_equal(t.lines[t.row], "");
        size_t found = 0;
        for (size_t row = 0; row < t.row; row++)
            for (size_t i = 0; i < ARRAY_LEN(want); i++)
                found += strcmp(t.lines[row], want[i]) == 0;
        assert_int_equal(found, ARRAY_LEN(want));
        for (int i = 0; i < 2; i++)
            release(&lines[i]);
    }
}

/* Whatever the room says can be taken, on a terminal or not: nothing is lost, even when every byte is a line. */
static void test_room_is_enough(void **state)
{
    static const char *const in[] = {"a\rb\r\r\nccc\r\n\n\rd", "\n"};
    static const char prefix[] = "[default12]:";
    enum { BYTES = 40 };

    (void)state;
    for (size_t max = 0; max < 2800; max++) {
        const char *text = in[max % 4 / 2];
        cleanup_tee struct tee_line line = {.text = BUF_INIT(8)}, same = {.text = BUF_INIT(8)};
        cleanup_buf struct buf sink = BUF_INIT(max / 4), all = BUF_INIT(100000);
        bool redrawn = true;
        const struct tee_out out = {
            .sink = &sink, .prefix = prefix, .redrawn = max % 2 ? &redrawn : NULL, .filtered = -1};
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
        cmocka_unit_test(test_redrawn_as_lines),
        cmocka_unit_test(test_redrawn_in_place),
        cmocka_unit_test(test_long_unfinished_text),
        cmocka_unit_test(test_bars_and_lines_of_two_ranks),
        cmocka_unit_test(test_room_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
