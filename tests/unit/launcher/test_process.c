/* test_process.c - what a rank is started with, as it sees it itself. */
#include "launcher/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

/* Exit code of `script`, or -1: it did not start. */
static int run(const char *script, struct err *err)
{
    char shell[] = "sh", option[] = "-c";
    char *words[] = {shell, option, (char *)(uintptr_t)script, NULL}, *env[] = {NULL};
    const struct process_spec spec = {.words = words, .env = env, .out = -1, .err = -1};
    pid_t pid = process_start(&spec, err);
    int status;

    if (pid < 0)
        return -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void test_a_session_of_its_own(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(run("read -r pid name state parent group session rest </proc/$$/stat; "
                         "[ $session = $$ ] && [ $group = $$ ]",
                         &err),
                     0);
}

static void test_a_program_that_is_not_there(void **state)
{
    char name[] = "/nonexistent/program", *words[] = {name, NULL};
    const struct process_spec spec = {.words = words, .env = words + 1, .out = -1, .err = -1};
    struct err err = {0};

    (void)state;
    assert_int_equal(process_start(&spec, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "cannot run /nonexistent/program"));
}

/* It would leave a core file, if nobody turned that off. */
static void test_an_abort_without_a_core(void **state)
{
    int status;
    const pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit limit;
        getrlimit(RLIMIT_CORE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_CORE, &limit);
        signal(SIGABRT, SIG_DFL);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    process_abort(pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_false(WCOREDUMP(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_of_its_own),
        cmocka_unit_test(test_a_program_that_is_not_there),
        cmocka_unit_test(test_an_abort_without_a_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
