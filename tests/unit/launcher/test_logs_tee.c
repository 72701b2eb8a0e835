/* test_logs_tee.c - what one turn of the launcher makes of the output of two ranks. */
#include "common/cleanup.h"
#include "launcher/logs.h"
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONG_LINE = 20000, ENDLESS = LOGS_LINE_BYTES + 20000 };

static void fill(int fd, char letter, size_t len)
{
    char bytes[ENDLESS];

    memset(bytes, letter, len);
    assert_true(fcntl(fd, F_SETPIPE_SZ, 2 * LOGS_LINE_BYTES) >= 0);
    assert_int_equal(write(fd, bytes, len), len);
}

/* Open for n ranks whose stderr is watched. */
static void open_logs(struct logs *l, int n)
{
    static uint8_t none[2];
    static bool shown[2] = {true, true};
    static struct options o;
    struct err err;

    o = (struct options){.nproc = n, .role = "default", .redirects = none, .tee = none, .shown = shown};
    assert_int_equal(logs_open(l, &o, "run", &err), 0);
    l->watches = true;
    assert_int_equal(logs_begin(l, 0, 0, &err), 0);
}

/* Two ranks that are watched have each begun with `len` letters of their own; *sink is what one turn makes of it. */
static void watch_a_turn(size_t len, const char *then, struct buf *sink)
{
    static const char *const letters = "ab";
    struct logs l;
    struct pollfd pfds[6];
    struct err err;

    open_logs(&l, 2);
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

static bool turns(struct logs *l)
{
    struct pollfd pfds[6];
    const int n = logs_poll(l, pfds);

    assert_true(poll(pfds, (nfds_t)n, 0) >= 0);
    return logs_turn(l, pfds, n);
}

/* One small write is read at once, and many soon after each other together; large ones, and no output, never wait. */
static void test_small_writes(void **state)
{
    struct logs l;

    (void)state;
    open_logs(&l, 1);
    const int fd = l.ranks[0].streams[1].child;
    fill(fd, 'a', 10);
    assert_false(turns(&l));
    assert_int_equal(l.sinks[1].len, 10);
    l.small_ms = INT64_MAX / 2; /* however slow this machine is */
    fill(fd, 'a', 10);
    assert_true(turns(&l));
    l.small_ms = INT64_MAX / 2;
    l.sinks[1].len = 0; /* nobody is to be written to here */
    assert_false(turns(&l));
    fill(fd, 'a', LONG_LINE);
    assert_false(turns(&l));
    l.small_ms = 1; /* long ago */
    l.sinks[1].len = 0;
    fill(fd, 'a', 10);
    assert_false(turns(&l));
    l.sinks[1].len = 0;
    logs_close(&l);
}

/* What waits for the console goes in writes that end with a line, or a state of a bar; the launcher's own words come last. */
static void test_writes_to_the_console(void **state)
{
    enum { TEXT_BYTES = 100, TEXTS = 60 };
    char text[TEXT_BYTES + 1], got[2 * PIPE_BUF];
    cleanup_close int before = dup(STDERR_FILENO);
    int ends[2];
    struct logs l;
    struct err err;

    (void)state;
    snprintf(text, sizeof(text), "%*s\r", TEXT_BYTES - 1, "|");
    open_logs(&l, 1);
    for (int i = 0; i < TEXTS; i++)
        assert_int_equal(buf_puts(&l.sinks[1], text, &err), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_DIRECT), 0); /* a read returns one write */
    assert_true(before >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    logs_say(&l, "torchrun: words\n", 20000);
    dup2(before, STDERR_FILENO);
    const ssize_t first = read(ends[0], got, sizeof(got));
    assert_int_equal(first, PIPE_BUF / TEXT_BYTES * TEXT_BYTES);
    assert_int_equal(read(ends[0], got, sizeof(got)), TEXT_BYTES * TEXTS - first);
    assert_int_equal(read(ends[0], got, sizeof(got)), strlen("torchrun: words\n"));
    close(ends[0]);
    close(ends[1]);
    logs_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watched_lines_do_not_mix),
        cmocka_unit_test(test_endless_lines_take_turns),
        cmocka_unit_test(test_small_writes),
        cmocka_unit_test(test_writes_to_the_console),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
