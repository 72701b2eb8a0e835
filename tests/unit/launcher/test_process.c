/* test_process.c - what a rank is started with, as it sees it itself. */
#include "launcher/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* Exit code of `script`, or -1: it did not start. */
static int run(const char *script, const struct cpuset *cpus, struct err *err)
{
    char shell[] = "sh", option[] = "-c";
    char *words[] = {shell, option, (char *)(uintptr_t)script, NULL}, *env[] = {NULL};
    const struct process_spec spec = {.words = words, .env = env, .out = -1, .err = -1, .cpus = cpus};
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
                         NULL, &err),
                     0);
}

static void test_bound_to_cpus(void **state)
{
    struct cpuset allowed, one = {0}, none = {0};
    struct err err = {0};
    char script[200];

    (void)state;
    assert_int_equal(topology_allowed(&allowed, &err), 0);
    for (int cpu = cpuset_next(&allowed, 0); cpu >= 0; cpu = cpuset_next(&allowed, cpu + 1)) {
        one = (struct cpuset){0};
        cpuset_add(&one, cpu);
        snprintf(
            script, sizeof(script),
            "while read -r name list; do [ $name = Cpus_allowed_list: ] && break; done </proc/self/status; "
            "[ $list = %d ]",
            cpu);
        assert_int_equal(run(script, &one, &err), 0);
    }
    /* Ours are as they were. */
    assert_int_equal(topology_allowed(&one, &err), 0);
    assert_memory_equal(&one, &allowed, sizeof(one));
    assert_int_equal(run("exit 0", &none, &err), -1);
    assert_non_null(strstr(err.msg, "cannot bind a rank to its CPUs"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_of_its_own),
        cmocka_unit_test(test_bound_to_cpus),
        cmocka_unit_test(test_a_program_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
