/* test_program.c - what Python runs, what runs by itself, as what, and why a file does not run. */
#include "common/cleanup.h"
#include "common/text.h"
#include "folder.h"
#include "launcher/process.h"
#include "launcher/program.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELF "\177ELF\2\1\1 and nothing that a kernel would start"

static void test_who_runs_it(void **state)
{
    static const struct {
        const char *text;
        mode_t mode;
        bool python;
    } cases[] = {
        {"import os\n", 0644, true},
        {"import os\n", 0755, true},
        {"", 0755, true},
        {"#!/usr/bin/env python3\n", 0755, false},
        {"#!/usr/bin/env python3\n", 0644, true},
        {"#!/bin/sh\npython3 x\n", 0755, false},
        {"#!/bin/sh\npython3 x\n", 0644, false},
        {ELF, 0755, false},
        {ELF, 0644, false},
        {TEXT_MARK "import os\n", 0644, true},
        {TEXT_MARK "#!/usr/bin/env python3\n", 0755, true},
        {TEXT_MARK "#!/bin/sh\npython3 x\n", 0755, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        folder_put("file", cases[i].text, cases[i].mode);
        if (program_wants_python("file") != cases[i].python)
            fail_msg("case %zu", i);
    }
    assert_false(program_wants_python("nothing"));
    assert_int_equal(mkdir("folder", 0755), 0);
    assert_false(program_wants_python("folder"));
    folder_put("folder/__main__.py", "", 0644);
    assert_true(program_wants_python("folder"));
    assert_int_equal(mkfifo("fifo", 0755), 0);
    assert_false(program_wants_python("fifo")); /* nobody writes to it */
}

/* The exit code of a program, or -1 with the error. */
static int run(const char *name, struct err *err)
{
    char *words[] = {(char *)(uintptr_t)name, NULL};
    const struct process_spec spec = {.words = words, .env = words + 1, .out = -1, .err = -1};
    pid_t pid = process_start(&spec, err);
    int status;

    if (pid < 0)
        return -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void test_it_runs(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(run("false", &err), 1); /* in $PATH */
    folder_put("own", "#!/bin/sh\nexit 7\n", 0755);
    assert_int_equal(run("./own", &err), 7);
    assert_int_equal(run("own", &err), 7); /* not there, but here */
    folder_put("plain", "exit 8\n", 0755);
    assert_int_equal(run("./plain", &err), 8);
    folder_put("false", "#!/bin/sh\nexit 9\n", 0755);
    assert_int_equal(run("false", &err), 1); /* $PATH comes first */
}

/* As execvp has it: what the kernel takes for no program is a script of sh. */
static void test_path_is_searched(void **state)
{
    static const char *const names[] = {"p1", "p2", "p3"};
    cleanup_free char *before = strdup(getenv("PATH"));
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(mkdir(names[i], 0755), 0);
    folder_put("p1/locked-there", "exit 4\n", 0644);
    folder_put("p2/locked-there", "exit 5\n", 0755);
    folder_put("p2/only-locked", "exit 6\n", 0644);
    folder_put("p2/of-another-machine", ELF, 0755);
    folder_put("p3/plain-there", "[ $0 = p3/plain-there ] && [ $# = 0 ] && exit 7\n", 0755);
    folder_put("here", "exit 8\n", 0755);
    assert_int_equal(setenv("PATH", "none:p1:p1/locked-there:p2:p3", 1), 0);
    const int goes_on = run("locked-there", &err), plain = run("plain-there", &err), here = run("here", &err);
    const int elf = run("of-another-machine", &err), elf_code = err.code;
    const int locked = run("only-locked", &err), locked_code = err.code;
    assert_int_equal(setenv("PATH", "none::p1", 1), 0); /* "" is the working folder */
    const int empty = run("here", &err);
    assert_int_equal(setenv("PATH", before, 1), 0);
    assert_int_equal(goes_on, 5);
    assert_int_equal(plain, 7);
    assert_int_equal(here, 8);
    assert_int_equal(elf, -1);
    assert_int_equal(elf_code, ENOEXEC);
    assert_int_equal(locked, -1);
    assert_int_equal(locked_code, EACCES);
    assert_int_equal(empty, 8);
}

static void test_why_it_does_not_run(void **state)
{
    static const struct {
        const char *name, *text, *want;
        mode_t mode;
        int code;
    } cases[] = {
        {"./none", NULL, "cannot run ./none: No such file or directory", 0, ENOENT},
        {"", NULL, "cannot run : No such file or directory", 0, ENOENT},
        {"none", NULL, "cannot run none: No such file or directory", 0, ENOENT},
        {"./locked", "#!/bin/sh\n", "cannot run ./locked: Permission denied", 0644, EACCES},
        {"locked", "#!/bin/sh\n", "cannot run locked: Permission denied", 0644, EACCES},
        {"./lost", "#! /no/such/shell -e\n",
         "cannot run ./lost: its first line names /no/such/shell: No such file or directory", 0755, ENOENT},
        {"./windows", "#!/bin/sh\r\necho\r\n",
         "cannot run ./windows: its first line ends with a carriage return, so it names no program: convert "
         "the file from Windows' line ends: No such file or directory",
         0755, ENOENT},
        {"./options", "#! /no/such/shell -e\r\n",
         "cannot run ./options: its first line ends with a carriage return, so it names no program: convert "
         "the file from Windows' line ends: No such file or directory",
         0755, ENOENT},
        {"./second", "#! /no/such/shell -e\n\r\n",
         "cannot run ./second: its first line names /no/such/shell: No such file or directory", 0755, ENOENT},
        {"./marked", TEXT_MARK "#!/bin/sh\ntrue\n",
         "cannot run ./marked: it begins with a byte order mark: save it as UTF-8 without one: "
         "Exec format error",
         0755, ENOEXEC},
        {"./wide", "\xff\xfe#",
         "cannot run ./wide: it begins with a byte order mark: save it as UTF-8 without one: Exec format "
         "error",
         0755, ENOEXEC},
        {"./other", ELF, "cannot run ./other: Exec format error", 0755, ENOEXEC},
        {"other", ELF, "cannot run other: Exec format error", 0755, ENOEXEC},
    };
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (cases[i].text)
            folder_put(cases[i].name, cases[i].text, cases[i].mode);
        assert_int_equal(run(cases[i].name, &err), -1);
        assert_string_equal(err.msg, cases[i].want);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_int_equal(err.code, cases[i].code);
    }
    assert_int_equal(mkdir("empty", 0755), 0);
    assert_int_equal(run("empty", &err), -1);
    assert_string_equal(err.msg, "cannot run empty: a folder, without a __main__.py: Permission denied");
    folder_put("elf", ELF, 0755);
    assert_int_equal(program_explain("elf", ENOENT, &err), -1);
    assert_non_null(strstr(err.msg, "cannot run elf: its loader is not here"));
}

static void test_a_session_of_its_own(void **state)
{
    struct err err = {0};

    (void)state;
    folder_put("session",
               "read -r pid name state parent group session rest </proc/$$/stat; "
               "[ $session = $$ ] && [ $group = $$ ]\n",
               0755);
    assert_int_equal(run("./session", &err), 0);
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
        cmocka_unit_test(test_who_runs_it),          cmocka_unit_test(test_it_runs),
        cmocka_unit_test(test_path_is_searched),     cmocka_unit_test(test_why_it_does_not_run),
        cmocka_unit_test(test_a_session_of_its_own), cmocka_unit_test(test_an_abort_without_a_core),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
