/* test_error_writer.c - what a launcher reads about a failed rank. */
#include "test.h"

#include "common/fsutil.h"
#include "trainer/run/error_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void encodes(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT(4096);
    struct err err;

    assert_int_equal(error_writer_encode("a \"b\" \\ c\n\xc3\xa9", 140, 1767225600999, &out, &err), 0);
    assert_string_equal(
        buf_str(&out),
        "{\"message\":{\"message\":\"a \\\"b\\\" \\\\ c\\u000a\xc3\xa9\",\"errorCode\":140,\"extraInfo\":"
        "{\"py_callstack\":\"\",\"timestamp\":\"1767225600\"}}}\n");
}

static void is_bounded(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT(64);
    struct err err = {0};

    assert_int_equal(
        error_writer_encode("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1, 0,
                            &out, &err),
        -1);
    assert_true(err.kind != ERR_NONE);
}

static void writes_or_says_why_not(void **state)
{
    (void)state;
    char path[] = "/tmp/test_error_file_XXXXXX";
    cleanup_buf struct buf text = BUF_INIT(4096);
    struct err err = {0};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(error_writer_write(path, "why", 1, 1000, &err), 0);
    assert_int_equal(fs_read(path, &text, &err), 0);
    assert_non_null(strstr(buf_str(&text), "\"message\":\"why\""));
    unlink(path);
    assert_int_equal(error_writer_write("/tmp/no/such/folder/e", "why", 1, 1000, &err), -1);
    assert_non_null(strstr(err.msg, "/tmp/no/such/folder"));
}

/* The form is that of the others, and the time is when it ends. */
static void tells_of_the_end_of_memory(void **state)
{
    char path[] = "/tmp/test_error_file_XXXXXX";
    cleanup_buf struct buf text = BUF_INIT(4096), want = BUF_INIT(4096);
    struct err err = {0};
    const int64_t before = time(NULL);
    bool found = false;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, path, strlen(path)), strlen(path));
    close(fd);
    error_writer_exhausted(path);
    assert_int_equal(fs_read(path, &text, &err), 0);
    for (int64_t s = before; !found && s <= time(NULL); s++) {
        buf_clear(&want);
        assert_int_equal(error_writer_encode("out of memory", 138, 1000 * s, &want, &err), 0);
        found = strcmp(buf_str(&text), buf_str(&want)) == 0;
    }
    assert_true(found);
    unlink(path);
    error_writer_exhausted((char[]){"/tmp/no/such/folder/e"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(writes_or_says_why_not),
        cmocka_unit_test(tells_of_the_end_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
