/* test_error_file.c - what a rank left of its exception: read, and handed on. */
#include "common/fsutil.h"
#include "folder.h"
#include "launcher/error_file.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char from[] = "from.json", to[] = "to.json";

static void write_file(const char *path, const char *text)
{
    folder_put(path, text, 0644);
}

static void expect_text(const char *got, const char *want)
{
    assert_string_equal(got ? got : "(none)", want ? want : "(none)");
}

#define RECORD(message, stack, time)                                                                         \
    "{\"message\": {\"message\": \"" message "\", \"extraInfo\": {\"py_callstack\": \"" stack                \
    "\", \"timestamp\": " time "}}}"

static void test_read(void **state)
{
    static const struct {
        const char *text, *message, *traceback;
        int64_t wall_ms;
    } cases[] = {
        {RECORD("ValueError: a\\n\\\"b\\\"", "Traceback:\\n  File \\\"t.py\\\"\\nValueError: a\\n",
                "\"1700000000\""),
         "ValueError: a\n\"b\"", "Traceback:\n  File \"t.py\"\nValueError: a\n", 1700000000000},
        {"{\"message\":\"plain\", \"timestamp\": 1700000001}", "plain", NULL, 1700000001000},
        {"{\"message\": {\"extraInfo\": {}, \"message\" : \"late\"}}", "late", NULL, 0},
        /* json.dump writes ASCII, others may not. */
        {RECORD("\\u00e9\\u20AC\\ud83d\\ude00!", "\xc3\xa9\xf0\x9f\x98\x80", "\"x\""),
         "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!", "\xc3\xa9\xf0\x9f\x98\x80", 0},
        {"{\"message\":\"\\ud83d|\\ude00|\\ud83d\\u0041|\\u12|\xc3|\xff\"}", "?|?|?A|?12|?|?", NULL, 0},
        {"{\"message\":\"\\u00e9x", "\xc3\xa9x", NULL, 0},
        {"{\"message\":\"cut\\", "cut", NULL, 0},
        {"{\"message\":\"cut\\u", "cut?", NULL, 0},
        /* No word to a terminal: ESC, DEL, NUL, U+009B (CSI of one character), a carriage return. */
        {"{\"message\":\"red \033[31m, \\\033[31m\\\177\"}", "red ,  ", NULL, 0},
        {"{\"message\":\"\\u001b[1m\\u0000\\u007f\\u009b1m\xc2\x9b\\r\\t.\"}", "    1m    .", NULL, 0},
        {"{\"message\": 3}", NULL, NULL, 0},
        {RECORD("no label", "", "\"7\""), "no label", NULL, 7000}, /* this project's trainer */
        {RECORD("", "", "7"), NULL, NULL, 7000},
        {"{\"message\": {\"message\": \"say \\\"py_callstack\\\": \\\"x\\\"\"}}",
         "say \"py_callstack\": \"x\"", NULL, 0},
        {"{\"message\": \"m\", \"timestamp\": 99999999999999999999}", "m", NULL, 0},
        {"{\"message\": \"m\", \"timestamp\": 253402300800}", "m", NULL, 0},
        {"{\"message\": \"m\", \"timestamp\": -5}", "m", NULL, 0},
        {"", NULL, NULL, 0},
        {"\"message\"", NULL, NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        write_file(from, cases[i].text);
        const struct error_file got = error_file_read(from, &a);
        expect_text(got.message, cases[i].message);
        expect_text(got.traceback, cases[i].traceback);
        assert_int_equal(got.wall_ms, cases[i].wall_ms);
    }
}

/* In the message alone, a code with which a process can fail. */
static void test_exit_code(void **state)
{
    static const struct {
        const char *text;
        int want;
    } cases[] = {
        {"{\"message\": {\"message\": \"m\", \"errorCode\": 140}}", 140},
        {"{\n \"message\": {\n  \"message\": \"m\",\n  \"errorCode\": 140\n }\n}\n", 140},
        {"{\"message\": {\"errorCode\": 138, \"message\": \"m\"}}", 138},
        {"{\"message\": {\"message\": \"m\", \"errorCode\": 0}}", 0},
        {"{\"message\": {\"message\": \"m\", \"errorCode\": -9}}", 0},
        {"{\"message\": {\"message\": \"m\", \"errorCode\": 256}}", 0},
        {"{\"message\": {\"message\": \"m\", \"errorCode\": \"3\"}}", 0},
        {"{\"message\": {\"message\": \"m\"}, \"errorCode\": 140}", 0},
        {"{\"message\": \"m\", \"errorCode\": 140}", 0},
        {"", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        write_file(from, cases[i].text);
        assert_int_equal(error_file_read(from, &a).exit_code, cases[i].want);
    }
}

/* Of a long message the beginning is kept, of a long traceback the end, both of whole characters; nothing else stays. */
static void test_long(void **state)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf text = BUF_INIT(ERROR_FILE_BYTES);
    struct err err = {0};

    (void)state;
    assert_int_equal(buf_puts(&text, "{\"message\":\"x", &err), 0);
    for (int i = 0; i < ERROR_FILE_MESSAGE_BYTES; i++)
        assert_int_equal(buf_puts(&text, "\xc3\xa9", &err), 0);
    assert_int_equal(buf_puts(&text, "\",\"py_callstack\":\"", &err), 0);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(buf_puts(&text, "\\u00e9", &err), 0);
    assert_int_equal(buf_puts(&text, "\"}", &err), 0);
    write_file(from, buf_str(&text));
    const struct error_file got = error_file_read(from, &a);
    assert_int_equal(strlen(got.message), ERROR_FILE_MESSAGE_BYTES - 1);
    assert_int_equal(strlen(got.traceback), ERROR_FILE_TRACEBACK_BYTES);
    assert_true(strlen(got.traceback) > EXIT_TRACEBACK_BYTES); /* the report notes that it was cut */
    assert_memory_equal(got.traceback, "\xc3\xa9", 2);
    assert_true(a.used_bytes < 2 * (ERROR_FILE_MESSAGE_BYTES + ERROR_FILE_TRACEBACK_BYTES));
}

static void test_no_file(void **state)
{
    cleanup_arena struct arena a = {0};

    (void)state;
    unlink(from);
    assert_null(error_file_read(from, &a).message);
    assert_int_equal(mkfifo(from, 0600), 0);
    assert_null(error_file_read(from, &a).message); /* nobody writes to it */
    unlink(from);
}

static void test_pass(void **state)
{
    static const struct {
        const char *text, *want;
        int code;
    } cases[] = {
        {"{\"message\": {\"message\": \"m\"}}", "{\"message\": {\"errorCode\": -9, \"message\": \"m\"}}", -9},
        {"{\"message\": {\"errorCode\": 3, \"message\": \"m\"}}",
         "{\"message\": {\"errorCode\": 1, \"message\": \"m\"}}", 1},
        {"{\"message\": {\"message\": \"m\", \"errorCode\" : [3, {\"a\": \"}\"}] }}",
         "{\"message\": {\"message\": \"m\", \"errorCode\" : -9}}", -9},
        /* Not one elsewhere. */
        {"{\"errorCode\": 3, \"message\": {\"message\": \"\\\"errorCode\\\": 4\", \"extraInfo\": "
         "{\"errorCode\": 5}}}",
         "{\"errorCode\": 3, \"message\": {\"errorCode\": 1, \"message\": \"\\\"errorCode\\\": 4\", "
         "\"extraInfo\": "
         "{\"errorCode\": 5}}}",
         1},
        {"{\"message\": {\"message\": \"cut", "{\"message\": {\"errorCode\": 1, \"message\": \"cut", 1},
        {"{\"message\": \"m\"}", "{\"message\": \"m\"}", 1},
        {"{}", "before", 1},
        {"", "before", 1},
        {NULL, "before", 1},
    };
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf got = BUF_INIT(1000);
        write_file(to, "before");
        unlink(from);
        if (cases[i].text)
            write_file(from, cases[i].text);
        assert_int_equal(error_file_pass(from, to, cases[i].code, &err), 0);
        assert_int_equal(fs_read(to, &got, &err), 0);
        assert_string_equal(buf_str(&got), cases[i].want);
    }
    write_file(from, "{\"message\": \"m\"}");
    assert_int_equal(error_file_pass(from, "/nowhere/at/all", 1, &err), -1);
}

/* One that is no regular file stays what it is, and gets the text: a FIFO, a link to one, a link to a file. */
static void test_pass_into_what_is_there(void **state)
{
    static const char text[] = "{\"message\": \"m\"}", fifo[] = "fifo", link[] = "link";
    char got[100] = "";
    struct err err = {0};
    struct stat st;

    (void)state;
    write_file(from, text);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink(fifo, link), 0);
    for (int i = 0; i < 2; i++) {
        const char *path = i ? link : fifo;
        assert_int_equal(error_file_pass(from, path, 1, &err), -1); /* nobody reads */
        cleanup_close int fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(error_file_pass(from, path, 1, &err), 0);
        assert_int_equal(read(fd, got, sizeof(got)), strlen(text));
        assert_memory_equal(got, text, strlen(text));
        assert_true(lstat(fifo, &st) == 0 && S_ISFIFO(st.st_mode));
        assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    }
    unlink(link);

    cleanup_buf struct buf all = BUF_INIT(1000);
    write_file(to, "before\n");
    assert_int_equal(symlink(to, link), 0);
    assert_int_equal(error_file_pass(from, link, 1, &err), 0);
    assert_int_equal(fs_read(to, &all, &err), 0);
    assert_string_equal(buf_str(&all), "before\n{\"message\": \"m\"}");
    assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read), cmocka_unit_test(test_exit_code),
        cmocka_unit_test(test_long), cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_pass), cmocka_unit_test(test_pass_into_what_is_there),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
