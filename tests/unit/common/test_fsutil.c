/* test_fsutil.c - bounds on reading, and that a failed replacement leaves the old file. */
#include "common/fsutil.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/fsutil-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char cmd[128];

    (void)state;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
    return system(cmd);
}

static void test_write_then_read(void **state)
{
    char path[128];
    struct err err;
    cleanup_buf struct buf b = BUF_INIT(100000);
    static char bytes[50000];

    (void)state;
    memset(bytes, 'a', sizeof(bytes));
    snprintf(path, sizeof(path), "%s/f", dir);
    assert_int_equal(fs_write_atomic(path, bytes, sizeof(bytes), &err), 0);
    assert_int_equal(fs_read(path, &b, &err), 0);
    assert_int_equal(b.len, sizeof(bytes));
    assert_memory_equal(b.data, bytes, sizeof(bytes));
}

static void test_too_large_is_refused(void **state)
{
    char path[128];
    struct err err;
    cleanup_buf struct buf b = BUF_INIT(4);

    (void)state;
    snprintf(path, sizeof(path), "%s/g", dir);
    assert_int_equal(fs_write_atomic(path, "12345", 5, &err), 0);
    assert_int_equal(fs_read(path, &b, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
}

static void test_missing_file(void **state)
{
    struct err err;
    cleanup_buf struct buf b = BUF_INIT(4);

    (void)state;
    assert_int_equal(fs_read("/nonexistent/file", &b, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

/* A full disk, as the kernel's file-size limit shows it: the write fails half-way. */
static void test_failed_write_keeps_the_old_file(void **state)
{
    char path[128];
    struct err err;
    struct rlimit old;
    cleanup_buf struct buf b = BUF_INIT(100);
    static char big[100000];

    (void)state;
    snprintf(path, sizeof(path), "%s/h", dir);
    assert_int_equal(fs_write_atomic(path, "old", 3, &err), 0);
    getrlimit(RLIMIT_FSIZE, &old);
    struct rlimit small = {4096, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    int failed = fs_write_atomic(path, big, sizeof(big), &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(failed, -1);
    assert_int_equal(err.code, EFBIG);
    assert_int_equal(fs_read(path, &b, &err), 0);
    assert_string_equal(buf_str(&b), "old");
    char tmp[192];
    snprintf(tmp, sizeof(tmp), "%s.%ld.tmp", path, (long)getpid());
    assert_int_equal(access(tmp, F_OK), -1);
}

/* Where others may write, a link lies instead of the temporary: neither it nor what it leads to is written. */
static void test_write_follows_no_link(void **state)
{
    char path[128], away[128], tmp[192];
    struct err err;
    struct stat st;
    cleanup_buf struct buf b = BUF_INIT(100);

    (void)state;
    snprintf(path, sizeof(path), "%s/linked", dir);
    snprintf(away, sizeof(away), "%s/away", dir);
    snprintf(tmp, sizeof(tmp), "%s.%ld.tmp", path, (long)getpid());
    assert_int_equal(fs_write_atomic(away, "theirs", 6, &err), 0);
    assert_int_equal(symlink(away, tmp), 0);
    assert_int_equal(fs_write_atomic(path, "ours", 4, &err), 0);
    assert_true(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
    assert_int_equal(fs_read(away, &b, &err), 0);
    assert_string_equal(buf_str(&b), "theirs");
}

static void test_regular_files_only(void **state)
{
    char path[128], file[128];
    struct err err;
    cleanup_buf struct buf b = BUF_INIT(100);

    (void)state;
    snprintf(path, sizeof(path), "%s/fifo", dir);
    snprintf(file, sizeof(file), "%s/regular", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(fs_read_regular(path, &b, &err), -1); /* waits for no writer */
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(fs_read_regular("/dev/zero", &b, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(fs_read_regular("/nonexistent/file", &b, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_int_equal(fs_write_atomic(file, "text", 4, &err), 0);
    assert_int_equal(fs_read_regular(file, &b, &err), 0);
    assert_string_equal(buf_str(&b), "text");
}

static void test_mkdirs(void **state)
{
    char path[128];
    char file[128];
    struct err err;
    struct stat st;

    (void)state;
    snprintf(path, sizeof(path), "%s/a/b/c", dir);
    assert_int_equal(fs_mkdirs(path, &err), 0);
    assert_int_equal(fs_mkdirs(path, &err), 0);
    assert_true(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
    snprintf(file, sizeof(file), "%s/a/file", dir);
    assert_int_equal(fs_write_atomic(file, "", 0, &err), 0);
    assert_int_equal(fs_mkdirs(file, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_then_read),
        cmocka_unit_test(test_too_large_is_refused),
        cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_failed_write_keeps_the_old_file),
        cmocka_unit_test(test_write_follows_no_link),
        cmocka_unit_test(test_regular_files_only),
        cmocka_unit_test(test_mkdirs),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
