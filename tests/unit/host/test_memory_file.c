/* test_memory_file.c - what can be done with a launcher's memory, and what cannot. */
#include "host/memory_file.h"
#include "host/rank_contract.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* As another process has it: by its name. */
static int open_named(const char *where)
{
    int pid, number;
    char path[64];

    assert_int_equal(sscanf(where, "%d/%d", &pid, &number), 2);
    assert_int_equal(pid, getpid());
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void test_its_name_opens_it(void **state)
{
    char where[MEMORY_FILE_BYTES], path[64], target[64] = "", byte = 'x';
    cleanup_close int fd = memory_file_make(CONTRACT_KEPT_DATA_NAME, 0, where), other = -1;

    (void)state;
    assert_true(fd >= 0);
    other = open_named(where);
    assert_int_equal(write(other, &byte, 1), 1);
    byte = 0;
    assert_int_equal(pread(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_true(readlink(path, target, sizeof(target) - 1) > 0);
    assert_string_equal(target, "/memfd:" CONTRACT_KEPT_DATA_NAME " (deleted)");
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void test_it_grows_and_never_shrinks(void **state)
{
    char where[MEMORY_FILE_BYTES];
    cleanup_close int fd = memory_file_make(CONTRACT_KEPT_DATA_NAME, 0, where), other = open_named(where);
    struct stat st;

    (void)state;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(ftruncate(other, 10000), 0);
    assert_int_equal(ftruncate(other, 20000), 0);
    assert_int_equal(ftruncate(other, 19999), -1);
    assert_int_equal(errno, EPERM);
}

static void test_a_size_stays(void **state)
{
    char where[MEMORY_FILE_BYTES];
    cleanup_close int fd = memory_file_make("four", 4, where),
                      other = memory_file_open("four", sv_from(where));
    struct stat st;

    (void)state;
    assert_true(fd >= 0 && other >= 0);
    assert_int_equal(memory_file_open("fou", sv_from(where)), -1);
    assert_int_equal(memory_file_open("four4", sv_from(where)), -1);
    assert_int_equal(fstat(other, &st), 0);
    assert_int_equal(st.st_size, 4);
    assert_int_equal(ftruncate(other, 5), -1);
    assert_int_equal(ftruncate(other, 3), -1);
}

/* A rank must not take from the next one what that needs. */
static void test_nobody_seals_it_otherwise(void **state)
{
    static const int seals[] = {F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_SEAL};
    char where[MEMORY_FILE_BYTES];
    cleanup_close int fd = memory_file_make(CONTRACT_KEPT_DATA_NAME, 0, where), other = open_named(where);

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(seals); i++) {
        assert_int_equal(fcntl(other, F_ADD_SEALS, seals[i]), -1);
        assert_int_equal(errno, EPERM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_its_name_opens_it),
        cmocka_unit_test(test_it_grows_and_never_shrinks),
        cmocka_unit_test(test_a_size_stays),
        cmocka_unit_test(test_nobody_seals_it_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
