/* test_bar.c - the bar at every width, how often it is drawn, and the real trainer on a terminal and without one. */
#include "test.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "launcher/run.h"
#include "sanitized.h"
#include "trainer/run/bar.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct pace_view half = {.epoch = 3,
                                      .epochs = 10,
                                      .step = 12,
                                      .steps = 375,
                                      .done = 100,
                                      .total = 200,
                                      .loss = 1.61234,
                                      .samples_per_s = 22751,
                                      .left_s = 83.9};

static void says_what_fits(void **state)
{
    static const struct {
        int columns;
        const char *want;
    } cases[] = {
        {120, " 50% [###############...............] epoch 3/10  step 12/375  loss 1.6123  23k samples/s  "
              "1:23 left"},
        {80, " 50% [####.....] epoch 3/10  step 12/375  loss 1.6123  23k samples/s  1:23 left"},
        {70, " 50% [######......] epoch 3/10  loss 1.6123  23k samples/s  1:23 left"},
        {60, " 50% [######.......]  loss 1.6123  23k samples/s  1:23 left"},
        {50, " 50% [#########.........]  loss 1.6123  1:23 left"},
        {30, " 50%  loss 1.6123  1:23 left"},
        {20, " 50%  1:23 left"},
        {6, " 50%"},
        {2, ""},
    };
    char line[BAR_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bar_render(&half, cases[i].columns, line);
        assert_string_equal(line, cases[i].want);
    }
}

/* Whatever the figures are: shorter than the terminal, never longer than the buffer. */
static void is_never_wider_than_the_terminal(void **state)
{
    static const struct pace_view odd[] = {
        {.done = 7, .total = 1, .loss = 1e30, .samples_per_s = 1e18, .left_s = 1e30},
        {.loss = -1e300, .left_s = 3600},
        {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, .loss = 1},
    };
    char line[BAR_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        for (int columns = 0; columns < 300; columns++) {
            bar_render(&odd[i], columns, line);
            assert_true(strlen(line) < (size_t)(columns ? columns : 1));
        }
    bar_render(&odd[0], 100, line);
    assert_non_null(strstr(line, "100% [##"));
    assert_non_null(strstr(line, "999:00:00 left"));
    bar_render(&odd[1], 100, line);
    assert_non_null(strstr(line, "  0% [.."));
    assert_non_null(strstr(line, "1:00:00 left"));
}

/* 100 steps of 50 ms, of which 20 come at once after a pause of a validation: the time that is left counts the pause. */
static void is_drawn_now_and_then(void **state)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct bar b = {.out = out};
    struct pace pace = {0};
    struct pace_view v = half;
    int64_t now = 1000;
    int drawn = 0;

    (void)state;
    bar_hide(&b);
    v.total = 201;
    for (v.done = 1; v.done <= 101; v.done++, now += 50) {
        pace_step(&pace, now, 64, &v);
        bar_step(&b, now, &v);
    }
    bar_hide(&b);
    bar_hide(&b);
    fclose(out);
    for (const char *at = text; (at = strstr(at, "\r\033[K ")); at++)
        drawn++;
    assert_int_equal(drawn, 25);
    assert_non_null(strstr(text, "1280 samples/s"));
    const char *last = strstr(text, " 50% ");
    assert_non_null(last);
    assert_non_null(strstr(last, "0:05 left\r\033[K"));
    assert_string_equal(strstr(last, "0:05 left") + 9, "\r\033[K"); /* erased once */
    free(text);
}

/* The trainer with such a stderr, and a file as its stdout. */
static void start(struct run *r, int err, const char *steps)
{
    run_start_on(r,
                 RUN_ARGS("convnet", "--epochs", "1000", "--max_steps", steps, "--threads", "1", "--ckpt_dir",
                          "checkpoints", "--resume", "never"),
                 NULL, -1, err);
}

/* Read until `text` has come, or to the end. */
static bool read_until(int fd, struct buf *b, const char *text)
{
    char piece[4096];
    struct err err;
    ssize_t n;

    while (!(text && strstr(buf_str(b), text)) && (n = read(fd, piece, sizeof(piece))) > 0)
        assert_int_equal(buf_append(b, piece, (size_t)n, &err), 0);
    return text && strstr(buf_str(b), text);
}

/* It ends so, with nothing but known lines on its stdout. */
static void expect_end(struct run *r, int code)
{
    static const char *const known[] = {"GPU 0 Loss: ", "stopped by SIGTERM ", "checkpoint of step "};

    assert_int_equal(run_wait(r), code);
    for (const char *line = buf_str(&r->out); *line; line += strcspn(line, "\n") + 1) {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            is_known |= strncmp(line, known[i], strlen(known[i])) == 0;
        assert_true(is_known);
    }
    run_release(r);
}

static void shows_on_a_terminal(void **state)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 60};
    cleanup_buf struct buf seen = BUF_INIT(1 << 20);
    cleanup_close int master = posix_openpt(O_RDWR | O_NOCTTY);

    (void)state;
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        skip(); /* no /dev/pts here */
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    struct run r;
    start(&r, slave, "100000000");
    close(slave);
    assert_true(read_until(master, &seen, " left"));
    assert_int_equal(kill(r.pid, SIGTERM), 0);
    read_until(master, &seen, NULL);
    expect_end(&r, 143);
    const char *bar = strstr(buf_str(&seen), "\r\033[K");
    assert_non_null(bar);
    assert_int_equal(strncmp(bar, "\r\033[K  0% [", 10), 0);
    assert_true(strcspn(bar + 4, "\r") < 60);
    assert_non_null(strstr(bar, "loss "));
    assert_string_equal(buf_str(&seen) + seen.len - 4, "\r\033[K"); /* and nothing is left of it */
}

static void shows_nothing_elsewhere(void **state)
{
    cleanup_buf struct buf seen = BUF_INIT(1 << 20);
    struct run r;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    start(&r, ends[1], SANITIZED ? "40" : "300"); /* longer than a bar waits */
    close(ends[1]);
    read_until(ends[0], &seen, NULL);
    close(ends[0]);
    expect_end(&r, 0);
    assert_string_equal(buf_str(&seen), "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_fits),          cmocka_unit_test(is_never_wider_than_the_terminal),
        cmocka_unit_test(is_drawn_now_and_then),   cmocka_unit_test(shows_on_a_terminal),
        cmocka_unit_test(shows_nothing_elsewhere),
    };

    assert_int_equal(argc, 2);
    run_torchrun = argv[1]; /* the program that run.h starts */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
