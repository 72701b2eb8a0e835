/* test_install.c - torchrun --install-to: the copy runs, nobody may write it, and what stands in its way is named. */
#include "launcher/program.h"

#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, OLD_BYTES = 3 };

static const char *torchrun;
static char folder[] = "/tmp/test_install.XXXXXX";
static char target[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(target, sizeof(target), "%s/torchrun", folder);
    return chmod(folder, 0777); /* as an emptyDir */
}

static int remove_folder(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command); // NOLINT(cert-env33-c)
}

static void write_old(mode_t mode)
{
    int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "old", OLD_BYTES), OLD_BYTES);
    close(fd);
}

static int entries(void)
{
    char command[64];
    int n = -1;

    snprintf(command, sizeof(command), "ls -A %s | wc -l", folder);
    FILE *out = popen(command, "re");
    assert_non_null(out);
    assert_int_equal(fscanf(out, "%d", &n), 1);
    pclose(out);
    return n;
}

/* The exit code of `torchrun --install-to path`, run in a child that `prepare` has changed; its stderr in `said`. */
static int install(const char *path, void (*prepare)(void), char said[static 2048])
{
    char name[] = "torchrun", option[] = "--install-to";
    char *words[] = {name, option, (char *)(uintptr_t)path, NULL};
    int out[2], status;
    /* By number: nobody may not look into every folder. */
    cleanup_close int program = open(torchrun, O_RDONLY | O_CLOEXEC);

    assert_true(program >= 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(out[1], STDERR_FILENO);
        umask(0077);
        if (prepare)
            prepare();
        fexecve(program, words, environ);
        _exit(99);
    }
    close(out[1]);
    size_t n = 0;
    for (ssize_t more = 1; more > 0; n += more > 0 ? (size_t)more : 0)
        more = read(out[0], said + n, 2047 - n);
    said[n] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Without root's permission to override the file's mode. */
static void be_nobody(void)
{
    if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
        _exit(98);
}

/* A disk that takes a part of the program. */
static void full_disk(void)
{
    const struct rlimit limit = {100 << 10, 100 << 10};

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        _exit(98);
}

static void test_the_copy_is_the_program(void **state)
{
    char command[9000], said[2048];
    struct stat st;

    (void)state;
    write_old(0600);
    assert_int_equal(install(target, NULL, said), 0);
    assert_string_equal(said, "");
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0555);
    assert_int_equal(entries(), 1);
    snprintf(command, sizeof(command), "cmp '%s' %s && %s --version >/dev/null", torchrun, target, target);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    assert_int_equal(install(target, be_nobody, said),
                     0); /* any user, over a file without write permission */
    assert_string_equal(said, "");
    assert_int_equal(entries(), 1);
}

static bool may_mount(void)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

/* Gone with the child. */
static void small_disk(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("small", folder, "tmpfs", 0, "size=64k") < 0)
        _exit(98);
}

/* Another node may have room: the operator tries again. */
static void test_a_disk_without_room(void **state)
{
    char said[2048], want[256];

    (void)state;
    if (!may_mount())
        skip();
    assert_int_equal(install(target, small_disk, said), 138);
    snprintf(want, sizeof(want), "torchrun: --install-to: %s: No space left on device\n", target);
    assert_string_equal(said, want);
    assert_int_equal(entries(), 0);
}

/* A folder that may not be written, a disk that is full, names that cannot be: what was there stays, and nothing is left beside
 * it. */
static void test_what_stands_in_its_way(void **state)
{
    char name[300] = "", none[80], folders[5000] = "";
    struct stat st;
    const struct {
        const char *path;
        void (*prepare)(void);
        const char *says;
    } cases[] = {{target, full_disk, "torchrun: File too large\n"},
                 {target, be_nobody, "torchrun: Permission denied\n"},
                 {name, NULL, "ame too long\n"}, /* C libraries differ in the beginning */
                 {folders, NULL, "ame too long\n"},
                 {none, NULL, "/none/torchrun: No such file or directory\n"},
                 {folder, NULL, "Is a directory\n"}};

    (void)state;
    write_old(0644);
    snprintf(none, sizeof(none), "%s/none/torchrun", folder);
    memset(folders, '/', sizeof(folders) - 1);
    snprintf(name, sizeof(name), "%s/", folder);
    memset(name + strlen(name), 'n', 255); /* the longest name; the temporary file's is longer */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char said[2048];
        assert_int_equal(chmod(folder, cases[i].prepare == be_nobody ? 0555 : 0777), 0);
        assert_int_equal(install(cases[i].path, cases[i].prepare, said), 1);
        if (strncmp(said, "torchrun: --install-to: ", 24) != 0 || !strstr(said, cases[i].says))
            fail_msg("%s", said);
        assert_int_equal(stat(target, &st), 0);
        assert_int_equal(st.st_size, OLD_BYTES);
        assert_int_equal(entries(), 1);
    }
}

static void test_a_program_that_cannot_be_read(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(program_install("/nonexistent", target, &err), -1);
    assert_string_equal(err.msg, "/nonexistent: No such file or directory");
    assert_int_equal(program_install("/", target, &err), -1);
    assert_non_null(strstr(err.msg, "Is a directory"));
    assert_int_equal(entries(), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_the_copy_is_the_program),
        IN_FOLDER(test_a_disk_without_room),
        IN_FOLDER(test_what_stands_in_its_way),
        IN_FOLDER(test_a_program_that_cannot_be_read),
    };

    if (argc != 2)
        return 2;
    torchrun = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
