/* test_logs_tee.c - bytes in any pieces, whole prefixed lines out. */
#include "common/cleanup.h"
#include "launcher/logs.h"
#include "launcher/logs_tee.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void test_lines_in_any_pieces(void **state)
{
    static const char in[] = "one\ntwo\n\nthree";

    (void)state;
    for (size_t step = 1; step < sizeof(in); step++) {
        cleanup_buf struct buf line = BUF_INIT(100), sink = BUF_INIT(1000);
        const struct tee_out out = {.sink = &sink, .prefix = "[a]:", .filtered = -1};
        for (size_t at = 0; at < sizeof(in) - 1; at += step) {
            size_t n = sizeof(in) - 1 - at < step ? sizeof(in) - 1 - at : step;
            logs_tee_take(&line, &out, in + at, n);
        }
        assert_string_equal(buf_str(&sink), "[a]:one\n[a]:two\n[a]:\n");
        logs_tee_flush(&line, &out);
        assert_string_equal(buf_str(&sink), "[a]:one\n[a]:two\n[a]:\n[a]:three\n");
        logs_tee_flush(&line, &out);
        assert_int_equal(sink.len, strlen("[a]:one\n[a]:two\n[a]:\n[a]:three\n"));
    }
}

static void test_line_longer_than_the_buffer(void **state)
{
    cleanup_buf struct buf line = BUF_INIT(4), sink = BUF_INIT(1000);
    const struct tee_out out = {.sink = &sink, .prefix = ">", .filtered = -1};

    (void)state;
    logs_tee_take(&line, &out, "abcdefghij\nk\n", 13);
    assert_string_equal(buf_str(&sink), ">abcd\n>efgh\n>ij\n>k\n");
}

static void test_hidden(void **state)
{
    cleanup_buf struct buf line = BUF_INIT(4);
    const struct tee_out out = {.prefix = ">", .filtered = -1};

    (void)state;
    logs_tee_take(&line, &out, "abcdefghij\nk", 12);
    logs_tee_flush(&line, &out);
    assert_int_equal(line.len, 0);
}

/* What a filter finds goes to the file too, whole, in whatever pieces it came. */
static void test_filtered(void **state)
{
    static const char in[] = "an apple\nnothing\n\n4 oranges, \0 too\na pear\nlast orange";
    static const char want[] = "[a]:an apple\n[a]:4 oranges, \0 too\n[a]:last orange\n";
    static const char *const filters[] = {"apple", "orange", NULL};

    (void)state;
    for (size_t step = 1; step < sizeof(in); step++) {
        cleanup_buf struct buf line = BUF_INIT(100);
        cleanup_close int fd = memfd_create("filtered", MFD_CLOEXEC);
        const struct tee_out out = {.prefix = "[a]:", .filters = filters, .filtered = fd};
        char got[200];
        assert_true(fd >= 0);
        for (size_t at = 0; at < sizeof(in) - 1; at += step)
            logs_tee_take(&line, &out, in + at, sizeof(in) - 1 - at < step ? sizeof(in) - 1 - at : step);
        logs_tee_flush(&line, &out);
        assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(want) - 1);
        assert_memory_equal(got, want, sizeof(want) - 1);
    }
}

/* A full disk costs the lines, not the stream. */
static void test_filtered_into_a_full_file(void **state)
{
    static const char *const filters[] = {"x", NULL};
    cleanup_buf struct buf line = BUF_INIT(100), sink = BUF_INIT(100);
    cleanup_close int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const struct tee_out out = {.sink = &sink, .prefix = "", .filters = filters, .filtered = fd};

    (void)state;
    assert_true(fd >= 0);
    logs_tee_take(&line, &out, "x\ny\n", 4);
    assert_string_equal(buf_str(&sink), "x\ny\n");
}

/* Whatever the room says can be taken: nothing is lost, even when every byte is a line. */
static void test_room_is_enough(void **state)
{
    static const char prefix[] = "[default12]:";

    (void)state;
    for (size_t max = 0; max < 300; max++) {
        cleanup_buf struct buf line = BUF_INIT(64), sink = BUF_INIT(max);
        const struct tee_out out = {.sink = &sink, .prefix = prefix, .filtered = -1};
        size_t room = logs_tee_room(&line, &sink, prefix), want = room * (sizeof(prefix) - 1 + 1);
        for (size_t i = 0; i < room; i++)
            logs_tee_take(&line, &out, "\n", 1);
        assert_int_equal(sink.len, want);
    }
}

enum { LONG_LINE = 20000, ENDLESS = LOGS_LINE_BYTES + 20000 };

static void fill(int fd, char letter, size_t len)
{
    char bytes[ENDLESS];

    memset(bytes, letter, len);
    assert_true(fcntl(fd, F_SETPIPE_SZ, 2 * LOGS_LINE_BYTES) >= 0);
    assert_int_equal(write(fd, bytes, len), len);
}

/* Two ranks that are watched have each begun with `len` letters of their own; *sink is what one turn makes of it. */
static void watch_a_turn(size_t len, const char *then, struct buf *sink)
{
    static const char *const letters = "ab";
    uint8_t none[2] = {0};
    bool shown[2] = {true, true};
    const struct options o = {.nproc = 2, .role = "default", .redirects = none, .tee = none, .shown = shown};
    struct logs l;
    struct pollfd pfds[6];
    struct err err;

    assert_int_equal(logs_open(&l, &o, "run", &err), 0);
    l.watches = true;
    assert_int_equal(logs_begin(&l, 0, 0, &err), 0);
    for (int i = 0; i < 2; i++) {
        const int fd = l.ranks[i].streams[1].child;
        fill(fd, letters[i], len);
        assert_int_equal(write(fd, then, strlen(then)), strlen(then));
    }
    assert_int_equal(logs_poll_max(&l), 6);
    const int n = logs_poll(&l, pfds);
    assert_int_equal(poll(pfds, (nfds_t)n, 0), 2);
    logs_turn(&l, pfds, n);
    assert_int_equal(buf_append(sink, buf_str(&l.sinks[1]), l.sinks[1].len, &err), 0);
    logs_close(&l);
}

/* What a rank has written of a line, and what follows at once, comes before another rank's. */
static void test_watched_lines_do_not_mix(void **state)
{
    cleanup_buf struct buf sink = BUF_INIT(LOGS_SINK_BYTES);

    (void)state;
    watch_a_turn(LONG_LINE, "\n", &sink);
    assert_int_equal(sink.len, 2 * (LONG_LINE + 1));
    assert_int_equal(strspn(sink.data, "a"), LONG_LINE);
    assert_int_equal(strspn(sink.data + LONG_LINE + 1, "b"), LONG_LINE);
}

/* A line without an end keeps the others waiting for so many bytes only. */
static void test_endless_lines_take_turns(void **state)
{
    cleanup_buf struct buf sink = BUF_INIT(LOGS_SINK_BYTES);

    (void)state;
    watch_a_turn(ENDLESS, "", &sink);
    assert_int_equal(strspn(buf_str(&sink), "a"), LOGS_LINE_BYTES);
    assert_int_equal(strspn(sink.data + LOGS_LINE_BYTES, "b"), LOGS_LINE_BYTES);
    assert_int_equal(sink.len, 2 * LOGS_LINE_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_in_any_pieces),
        cmocka_unit_test(test_line_longer_than_the_buffer),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_filtered),
        cmocka_unit_test(test_filtered_into_a_full_file),
        cmocka_unit_test(test_room_is_enough),
        cmocka_unit_test(test_watched_lines_do_not_mix),
        cmocka_unit_test(test_endless_lines_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
