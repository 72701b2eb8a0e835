/* test_progress_file.c - the progress that a program keeps in a file: read when it is another one, whatever lies there. */
#include "common/cleanup.h"
#include "folder.h"
#include "launcher/progress/progress_file.h"
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char path[] = "progress";

static void write_file(const char *text, size_t len)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, len, out), len);
    fclose(out);
}

static bool parse(const char *text, struct progress_seen *s)
{
    return progress_file_parse(sv_from(text), s);
}

static void test_members(void **state)
{
    struct progress_seen s;

    (void)state;
    assert_true(
        parse(" {\"step\": 1200, \"totalSteps\":5000,\n\"epoch\":1, \"totalEpochs\": 3, \"percent\": 24.5,"
              " \"loss\": -0.5e-1, \"samplesPerSecond\": 812.5} \n",
              &s));
    assert_true(s.step == 1200 && s.total_steps == 5000 && s.epoch == 1 && s.total_epochs == 3);
    assert_true(s.percent == 24.5 && s.loss == -0.05 && s.samples_per_second == 812.5);
    assert_true(parse("{\"step\": 3}", &s));
    assert_true(s.step == 3 && s.total_steps == -1 && isnan(s.loss) && isnan(s.percent));
    /* others are passed over, whatever is in them */
    assert_true(parse(
        "{\"a\": [1, {\"step\": 5}], \"b\": \"}, \\\"step\\\": 6\", \"c\": null, \"step\": 7, \"d\": {}}",
        &s));
    assert_int_equal(s.step, 7);
}

static void test_bad_text_says_nothing(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "{}",
        "[]",
        "null",
        "3",
        "{\"step\"",
        "{\"step\":",
        "{\"step\": ",
        "{\"step\": 3",
        "{\"step\": 3,",
        "{\"step\": 3,}",
        "{\"step\": 3} x",
        "{\"step\": 3}{",
        "{step: 3}",
        "{\"step\": }",
        "{\"step\" 3}",
        "{\"a\": \"x",
        "{\"other\": 1}",
        "{\"a\": [}",
        "\"step\": 3",
        "{\"step\": \"3\"}",
        "{\"step\": null}",
        "{\"step\": -1}",
        "{\"step\": 1e16}",
        "{\"step\": nan}",
        "{\"step\": inf}",
        "{\"totalSteps\": 500}", /* the steps are in the lines */
        "{\"totalEpochs\": 3, \"totalSteps\": 500}",
        "{\"percent\": 101}",
        "{\"percent\": -1}",
        "{\"loss\": NaN}",
        "{\"samplesPerSecond\": -3}",
    };
    struct progress_seen s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (parse(texts[i], &s))
            fail_msg("%s says something", texts[i]);
    assert_false(progress_file_parse((struct sv){"{\"step\": 3}\0", 12}, &s));
    assert_int_equal(s.step, -1);
}

static void test_read_when_it_changes(void **state)
{
    struct progress_file f = {0};
    struct progress_seen s;

    (void)state;
    unlink(path);
    assert_false(progress_file_read(&f, path, &s));
    write_file("{\"step\": 1}", 11);
    assert_true(progress_file_read(&f, path, &s));
    assert_int_equal(s.step, 1);
    assert_false(progress_file_read(&f, path, &s));
    write_file("{\"step\": 12}", 12); /* another size */
    assert_true(progress_file_read(&f, path, &s));
    assert_int_equal(s.step, 12);
    /* another file of the same size and time */
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(rename(path, "new"), 0);
    write_file("{\"step\": 13}", 12);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
    assert_true(progress_file_read(&f, path, &s));
    assert_int_equal(s.step, 13);
    /* another time */
    write_file("{\"step\": 14}", 12);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){st.st_atim, {st.st_mtim.tv_sec, 5}}, 0),
                     0);
    assert_true(progress_file_read(&f, path, &s));
    assert_int_equal(s.step, 14);
    /* one that is not finished, and then is */
    write_file("{\"step\": 1", 10);
    assert_false(progress_file_read(&f, path, &s));
    write_file("{\"step\": 15}", 12);
    assert_true(progress_file_read(&f, path, &s));
}

static void test_what_is_no_such_file(void **state)
{
    static char big[PROGRESS_FILE_BYTES + 1];
    struct progress_file f = {0};
    struct progress_seen s;

    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* and nobody waits for who writes it */
    assert_false(progress_file_read(&f, path, &s));
    const int fifo = open(path, O_RDWR);
    assert_int_equal(write(fifo, "{\"step\": 1}", 11), 11);
    f = (struct progress_file){0};
    assert_false(progress_file_read(&f, path, &s));
    close(fifo);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(progress_file_read(&f, path, &s));
    rmdir(path);
    memset(big, ' ', sizeof(big));
    memcpy(big, "{\"step\": 1}", 11);
    write_file(big, sizeof(big) - 1);
    assert_true(progress_file_read(&f, path, &s));
    write_file(big, sizeof(big));
    assert_false(progress_file_read(&f, path, &s));
    write_file("{\"step\": 1}", 11);
    assert_int_equal(symlink(path, "link"), 0);
    f = (struct progress_file){0};
    assert_false(progress_file_read(&f, "link", &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_bad_text_says_nothing),
        cmocka_unit_test(test_read_when_it_changes),
        cmocka_unit_test(test_what_is_no_such_file),
    };

    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
