/* test_report.c - the lines that people and programs read, letter by letter. */
#include "test.h"

#include "common/cleanup.h"
#include "trainer/events/event_encode.h"
#include "trainer/run/report.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char *text;
    size_t len;
    FILE *out;
    int64_t now_ms;
};

static int64_t now(void *ctx)
{
    return ((struct fixture *)ctx)->now_ms;
}

static struct report_options options(struct fixture *f, enum log_format format)
{
    *f = (struct fixture){.now_ms = 1767225600000};
    f->out = open_memstream(&f->text, &f->len);
    return (struct report_options){.out = f->out,
                                   .format = format,
                                   .epochs = 10,
                                   .steps = 375,
                                   .samples_per_step = 128,
                                   .clock = {now, now, now, NULL, f}};
}

static void tell(struct report *r)
{
    struct config cfg = {.name = "mnist-cnn", .batch_size = 32, .micro_batches = 2, .precision = 2};
    struct report_times t = {.samples = 480000,
                             .train_s = 40,
                             .val_s = 2.5,
                             .met_s = 0.01,
                             .data_s = 0.2,
                             .startup_s = 0.25,
                             .data_kept = true};

    report_start(r, &cfg, 93322, 4, "host", "avx512", 1, &t);
    report_epoch(r, 0, 375);
    report_step(r, 1, 125, 1.61234);
    report_val(r, 1, 375, 1.6, 0.86);
    report_test(r, 3750, 1.57151, 0.88913);
    report_times(r, &t);
    report_stop(r, "SIGTERM", NULL, 2, 17);
}

static void check(struct fixture *f, struct report *r, const char *want)
{
    struct err err;

    tell(r);
    assert_int_equal(report_close(r, &err), 0);
    fclose(f->out);
    assert_string_equal(f->text, want);
    free(f->text);
}

static void text_lines(void **state)
{
    (void)state;
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_TEXT);
    struct err err;

    check(&f, report_open(&o, &err),
          "mnist-cnn: 93322 parameters, 4 ranks (host), batch 32 per rank in 2 micro-batches, 1 thread per "
          "rank (avx512, bf16)\n"
          "epoch 1/10, batch   125/375 with loss: 1.6123\n"
          "epoch 1/10 with val loss: 1.6000, val accuracy: 0.8600\n"
          "test loss: 1.5715, test accuracy: 0.8891\n"
          "training time: 42.50 s (steps 40.00 s, validation 2.50 s), 12000 samples/s; start-up 0.25 s\n"
          "stopped by SIGTERM after epoch 2, batch 17/375\n");
}

static void json_lines(void **state)
{
    (void)state;
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_JSON);
    struct err err;

#define TIME "{\"time\":\"2026-01-01T00:00:00.000Z\",\"event\":"
    check(&f, report_open(&o, &err),
          TIME
          "\"start\",\"model\":\"mnist-cnn\",\"parameters\":93322,\"ranks\":4,\"transport\":\"host\","
          "\"batch_size\":32,\"micro_batches\":2,\"precision\":\"bf16\",\"threads\":1,\"isa\":"
          "\"avx512\",\"epochs\":10,\"steps\":375,\"met_s\":0.010,\"data_s\":0.200,\"data_kept\":true}\n" TIME
          "\"train\",\"epoch\":1,\"epochs\":10,\"step\":125,\"steps\":375,\"global_step\":125,\"loss\":"
          "1.61234}\n" TIME
          "\"val\",\"epoch\":1,\"epochs\":10,\"global_step\":375,\"loss\":1.6,\"accuracy\":0.86}\n" TIME
          "\"test\",\"global_step\":3750,\"loss\":1.57151,\"accuracy\":0.88913}\n" TIME
          "\"times\",\"startup_s\":0.250,\"train_s\":40.000,\"val_s\":2.500,\"samples\":480000,"
          "\"samples_per_s\":12000.0}\n" TIME
          "\"stop\",\"signal\":\"SIGTERM\",\"during\":\"training\",\"epoch\":2,\"step\":17}\n");
}

/* JSON has neither NaN nor infinity: gradients may overflow behind a loss that does not. */
static void numbers_that_are_none_are_left_out(void **state)
{
    (void)state;
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_JSON);
    const struct report_speed v = {.lr = 0.5, .grad_norm = INFINITY, .tokens_per_s = 7};
    struct err err;
    struct report *r = report_open(&o, &err);

    report_speed(r, 1, &v);
    assert_int_equal(report_close(r, &err), 0);
    fclose(f.out);
    assert_non_null(strstr(f.text, "\"lr\":0.5,\"tokens_per_second\":7}"));
    free(f.text);
}

/* The bar is on a stream of its own, and gone before each whole line; --max_steps ends the run before its epochs do. */
static void the_bar_makes_room_for_lines(void **state)
{
    (void)state;
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_TEXT);
    struct err err;
    char *bar;
    size_t len;

    o.bar = open_memstream(&bar, &len);
    o.own_lines = true;
    o.max_steps = 400;
    struct report *r = report_open(&o, &err);
    report_epoch(r, 0, o.steps);
    for (int64_t step = 1; step <= 100; step++) {
        f.now_ms += 10;
        report_step(r, 1, step, 1.5); /* the preset has its own lines: none of ours, and the bar stays */
        report_progress(r, 1, step, 1.5);
    }
    assert_true(len > 0);
    assert_int_equal(strstr(bar, "\033[K") == bar + 1, true);
    assert_non_null(strstr(bar, " 20% ["));
    assert_non_null(strstr(bar, "loss 1.5000"));
    assert_string_equal(strrchr(bar, ' '), " left");
    report_line(r, f.out, LOG_FORMAT_TEXT, "epoch", "Epoch", &(struct lines_values){0});
    fflush(o.bar);
    assert_string_equal(strrchr(bar, ' '), " left\r\033[K");
    assert_int_equal(report_close(r, &err), 0);
    fclose(f.out);
    fclose(o.bar);
    assert_string_equal(f.text, "Epoch\n");
    free(f.text);
    free(bar);
}

static void a_progress_file_that_cannot_be_is_a_warning(void **state)
{
    (void)state;
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_TEXT);
    struct err err;

    o.progress = "/nonexistent/progress";
    struct report *r = report_open(&o, &err);
    report_progress(r, 1, 1, 1.5);
    assert_int_equal(report_close(r, &err), 0);
    fclose(f.out);
    assert_string_equal(f.text,
                        "warning: no progress is written: TORCHKEEPER_PROGRESS_FILE=/nonexistent/progress: "
                        "No such file or directory\n");
    free(f.text);
}

static void without_a_report_nothing_happens(void **state)
{
    (void)state;
    struct err err;

    tell(NULL);
    report_progress(NULL, 1, 1, 1);
    assert_int_equal(report_close(NULL, &err), 0);
}

/* A fresh start reports that it removes event files; the first run in a folder, and one that resumes, report nothing. */
static void says_what_it_removes(void **state)
{
    static const int64_t resumed[] = {-1, 7, -1};
    static const char *const want[] = {"", "",
                                       "--log_dir: the event files of trainer's ended runs were removed\n"};
    char dir[] = "/tmp/test_report_XXXXXX", command[64];
    struct err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct fixture f;
        struct report_options o = options(&f, LOG_FORMAT_TEXT);
        o.log_dir = dir;
        o.resumed_step = resumed[i];
        assert_int_equal(report_close(report_open(&o, &err), &err), 0);
        fclose(f.out);
        assert_string_equal(f.text, want[i]);
        free(f.text);
    }
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* The bytes of the one event file of a run that starts afresh and reports nothing. */
static off_t size_of_fresh(bool later_attempt)
{
    char dir[] = "/tmp/test_report_XXXXXX", command[64];
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_TEXT);
    struct err err = {0};
    struct stat st = {0};

    assert_non_null(mkdtemp(dir));
    o.log_dir = dir;
    o.resumed_step = -1;
    o.later_attempt = later_attempt;
    assert_int_equal(report_close(report_open(&o, &err), &err), 0);
    fclose(f.out);
    free(f.text);
    DIR *names = opendir(dir);
    assert_non_null(names);
    for (struct dirent *e; (e = readdir(names));)
        if (e->d_name[0] != '.')
            assert_int_equal(fstatat(dirfd(names), e->d_name, &st, 0), 0);
    closedir(names);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    return st.st_size;
}

/* An earlier attempt of a job may still write events: two session starts make readers drop them. */
static void a_later_attempt_begins_with_session_starts(void **state)
{
    struct err err = {0};
    cleanup_buf struct buf starts = BUF_INIT(4096);

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(event_encode_restart(1, 1, &starts, &err), 0);
    assert_int_equal(size_of_fresh(true), size_of_fresh(false) + (off_t)starts.len);
}

/* A path may have any characters. */
static void a_note_in_json_is_the_text(void **state)
{
    (void)state;
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_JSON);
    struct err err = {0};
    struct report *r = report_open(&o, &err);

    report_note(r, true, "\"a\\b\": 1\n");
    assert_int_equal(report_close(r, &err), 0);
    fclose(f.out);
    assert_non_null(strstr(f.text, "\"event\":\"warning\",\"text\":\"\\\"a\\\\b\\\": 1\\u000a\"}\n"));
    free(f.text);
}

/* A disk that is full from the second record on: the lines continue, and the end of the run reports it. */
static void a_full_disk_is_told_at_the_end(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_report_XXXXXX";
    struct fixture f;
    struct report_options o = options(&f, LOG_FORMAT_TEXT);
    struct rlimit before;
    struct err err = {0};

    assert_non_null(mkdtemp(dir));
    o.log_dir = dir;
    struct report *r = report_open(&o, &err);
    assert_non_null(r);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){60, before.rlim_max});
    tell(r);
    int rc = report_close(r, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(err.msg, "--log_dir"));
    fclose(f.out);
    assert_non_null(strstr(f.text, "test loss: 1.5715, test accuracy: 0.8891\n"));
    free(f.text);
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_lines),
        cmocka_unit_test(json_lines),
        cmocka_unit_test(numbers_that_are_none_are_left_out),
        cmocka_unit_test(the_bar_makes_room_for_lines),
        cmocka_unit_test(a_progress_file_that_cannot_be_is_a_warning),
        cmocka_unit_test(without_a_report_nothing_happens),
        cmocka_unit_test(says_what_it_removes),
        cmocka_unit_test(a_later_attempt_begins_with_session_starts),
        cmocka_unit_test(a_note_in_json_is_the_text),
        cmocka_unit_test(a_full_disk_is_told_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
