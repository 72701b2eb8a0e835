/* test_progress_writer.c - what the trainer leaves in the progress file, read as the launcher reads it. */
#include "test.h"

#include "common/cleanup.h"
#include "launcher/progress/progress_file.h"
#include "trainer/run/progress_writer.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/test_progress_writer_XXXXXX", path[64];

static bool read_it(struct progress_seen *seen)
{
    struct progress_file f = {0};

    return progress_file_read(&f, path, seen);
}

static void every_second_and_at_the_end(void **state)
{
    struct pace_view v = {
        .epoch = 2, .epochs = 3, .done = 10, .total = 30, .loss = 0.25, .samples_per_s = 812.5};
    struct progress_writer w;
    struct progress_seen seen;
    struct err err;

    (void)state;
    assert_int_equal(progress_writer_open(&w, path, &err), 0);
    assert_false(read_it(&seen)); /* nothing yet */
    progress_writer_step(&w, 5000, &v);
    assert_true(read_it(&seen));
    assert_int_equal(seen.step, 10);
    assert_int_equal(seen.total_steps, 30);
    assert_int_equal(seen.epoch, 2);
    assert_int_equal(seen.total_epochs, 3);
    assert_true(seen.loss == 0.25 && seen.samples_per_second == 812.5);
    v.done = 11;
    progress_writer_step(&w, 5999, &v);
    assert_true(read_it(&seen));
    assert_int_equal(seen.step, 10);
    v.done = 12;
    progress_writer_step(&w, 6000, &v);
    assert_true(read_it(&seen));
    assert_int_equal(seen.step, 12);
    v.done = 30;
    progress_writer_step(&w, 6001, &v);
    assert_true(read_it(&seen));
    assert_int_equal(seen.step, 30);
    progress_writer_close(&w);
    progress_writer_close(&w);
    assert_true(read_it(&seen));
}

/* All members at their longest, then few: nothing is left of what was longer, and no number that JSON has not. */
static void each_state_is_whole(void **state)
{
    const double losses[] = {-1.23456789e-300, NAN, INFINITY, 1e300, 0},
                 rates[] = {1e300, NAN, -INFINITY, 0.1, 7};
    struct progress_writer w;
    struct progress_seen seen;
    struct err err;

    (void)state;
    assert_int_equal(progress_writer_open(&w, path, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(losses); i++)
        for (size_t k = 0; k < ARRAY_LEN(rates); k++) {
            const int64_t count = i % 2 ? 1 : PROGRESS_COUNT_MAX;
            const struct pace_view v = {.epoch = count,
                                        .epochs = count,
                                        .done = count,
                                        .total = count,
                                        .loss = losses[i],
                                        .samples_per_s = rates[k]};
            progress_writer_step(&w, 0, &v);
            assert_true(read_it(&seen));
            assert_int_equal(seen.step, count);
            assert_int_equal(isfinite(seen.loss), isfinite(losses[i]));
            assert_int_equal(isfinite(seen.samples_per_second), isfinite(rates[k]));
        }
    progress_writer_close(&w);
}

static void not_there_is_an_error_in_words(void **state)
{
    struct progress_writer w;
    struct err err;
    char fifo[80], link[80];
    const char *const bad[] = {"/nonexistent/file", dir, fifo, link, "/dev/null"};

    (void)state;
    snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink(path, link), 0);
    cleanup_close int reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(progress_writer_open(&w, bad[i], &err), -1);
        assert_non_null(strstr(err.msg, "TORCHKEEPER_PROGRESS_FILE="));
        assert_non_null(strstr(err.msg, bad[i]));
        progress_writer_step(&w, 0, &(struct pace_view){0});
        progress_writer_close(&w);
    }
    assert_int_equal(progress_writer_open(&w, NULL, &err), 0);
    progress_writer_step(&w, 0, &(struct pace_view){0});
    progress_writer_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_second_and_at_the_end),
        cmocka_unit_test(each_state_is_whole),
        cmocka_unit_test(not_there_is_an_error_in_words),
    };

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/progress", dir);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command) ? 1 : failed;
}
