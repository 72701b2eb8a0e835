/* test_memory.c - a child process that memory_must ends: one line, the code that calls for another try, nothing after it. */
#include "common/contract.h"
#include "common/memory.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES = 256, REACHED = 3 };

struct ending {
    int status;
    char text[TEXT_BYTES];
};

/* The last thing in a child. stdout's buffer is left as it is, as abort did. */
static void exhaust(void)
{
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    printf("in the buffer");
    (void)memory_must(NULL);
    _exit(REACHED);
}

/* How a child ends that does `run`, and what it wrote to stdout and stderr. */
static struct ending child(void (*run)(void))
{
    struct ending end = {0};
    size_t len = 0;
    ssize_t n;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        run();
        _exit(REACHED);
    }
    close(ends[1]);
    while (len < sizeof(end.text) - 1 && (n = read(ends[0], end.text + len, sizeof(end.text) - 1 - len)) > 0)
        len += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &end.status, 0), pid);
    return end;
}

static void assert_retryable(int status)
{
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_CODE_RETRYABLE);
}

static void test_a_line_and_a_code(void **state)
{
    (void)state;
    struct ending end = child(exhaust);
    assert_retryable(end.status);
    char want[TEXT_BYTES];
    snprintf(want, sizeof(want), "%s: out of memory\n", program_invocation_short_name);
    assert_string_equal(end.text, want);
}

static void test_what_is_there_is_handed_on(void **state)
{
    int x = 7;

    (void)state;
    assert_ptr_equal(memory_must(&x), &x);
}

static void with_a_long_name(void)
{
    static char name[5000];

    memset(name, 'n', sizeof(name) - 1);
    program_invocation_short_name = name;
    exhaust();
}

static void test_a_long_name_is_cut(void **state)
{
    (void)state;
    struct ending end = child(with_a_long_name);
    assert_retryable(end.status);
    assert_true(strlen(end.text) > 20);
    assert_non_null(strstr(end.text, "nnn: out of memory\n"));
}

/* No memory at all: every allocation, also of a library on the way to the end, would be one too many. */
static void with_no_memory_left(void)
{
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){0, 0});
    exhaust();
}

static void test_without_any_memory(void **state)
{
    (void)state;
    struct ending end = child(with_no_memory_left);
    assert_retryable(end.status);
    assert_non_null(strstr(end.text, ": out of memory\n"));
}

static void with_stderr_closed(void)
{
    close(STDERR_FILENO);
    exhaust();
}

/* A pipe that somebody holds and nobody reads. */
static void with_stderr_full(void)
{
    static const char page[4096];
    int ends[2];

    if (pipe2(ends, O_NONBLOCK) < 0)
        _exit(REACHED);
    while (write(ends[1], page, sizeof(page)) > 0)
        ;
    (void)fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    exhaust();
}

static void with_nobody_at_the_other_end(void)
{
    int ends[2];

    signal(SIGPIPE, SIG_DFL);
    if (pipe(ends) < 0)
        _exit(REACHED);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    exhaust();
}

static void test_no_line_can_be_written(void **state)
{
    (void)state;
    assert_retryable(child(with_stderr_closed).status);
    assert_retryable(child(with_stderr_full).status);
    assert_retryable(child(with_nobody_at_the_other_end).status);
}

static void write_to(void *fd)
{
    if (write(*(int *)fd, "told too", 8) != 8)
        _exit(REACHED);
}

static void with_somebody_else_to_tell(void)
{
    static int fd = STDOUT_FILENO;

    memory_on_exhausted(write_to, &fd);
    exhaust();
}

static void test_somebody_else_is_told(void **state)
{
    (void)state;
    struct ending end = child(with_somebody_else_to_tell);
    assert_retryable(end.status);
    assert_non_null(strstr(end.text, ": out of memory\ntold too"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_and_a_code),      cmocka_unit_test(test_what_is_there_is_handed_on),
        cmocka_unit_test(test_a_long_name_is_cut),     cmocka_unit_test(test_without_any_memory),
        cmocka_unit_test(test_no_line_can_be_written), cmocka_unit_test(test_somebody_else_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
