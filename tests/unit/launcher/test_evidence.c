/* test_evidence.c - ranks' processes in a made-up /proc and in the real one. */
#include "folder.h"
#include "launcher/evidence.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char root[] = ".";

/* The file `name` of the process. */
static void put(pid_t pid, const char *name, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
    folder_put(path, text, 0644);
}

static void process(pid_t pid, const char *name, char state, pid_t parent, pid_t session, const char *exe)
{
    char text[300];

    snprintf(text, sizeof(text), "%d (%s) %c %d %d %d 0 -1 4194304 1 2 3 4 250 50 7 8 20 0 1 0 99\n",
             (int)pid, name, state, (int)parent, (int)session, (int)session);
    put(pid, "stat", text);
    snprintf(text, sizeof(text), "%d/exe", (int)pid);
    assert_int_equal(symlink(exe, text), 0);
}

static void test_the_process_of_a_rank(void **state)
{
    cleanup_arena struct arena a = {0};
    pid_t pids[4];

    (void)state;
    /* A shell that started Python, which started workers; another rank that is a program; one whose shell is gone. */
    process(100, "sh", 'S', 1, 100, "/bin/dash");
    process(90, "python3", 'S', 100, 100, "/usr/bin/python3.11");
    process(103, "pt_data_worker", 'S', 90, 100, "/usr/bin/python3.11");
    process(104, "nvidia-smi", 'S', 90, 100, "/usr/bin/nvidia-smi");
    process(200, "trainer", 'D', 1, 200, "/bin/trainer");
    process(301, "trainer) S 1 1 1 (", 'R', 1, 300, "/bin/trainer");
    process(400, "sh", 'Z', 1, 400, "/bin/dash");
    put(1234567, "stat", "nonsense");
    put(1234568, "stat", "1234568 (x) S 1");
    for (pid_t pid = 5000; pid < 5300; pid++)
        process(pid, "other", 'S', 1, 5000, "/bin/other");
    const struct evidence e = evidence_scan(root, &a);
    assert_int_equal(e.n, 306);
    assert_int_equal(evidence_main(&e, root, 100), 90);
    assert_int_equal(evidence_main(&e, root, 200), 200);
    assert_int_equal(evidence_main(&e, root, 300), 301);
    assert_int_equal(evidence_main(&e, root, 400), 0);
    assert_int_equal(evidence_pythons(&e, root, 100, 90, pids, 4), 1);
    assert_int_equal(pids[0], 103);
    assert_int_equal(evidence_pythons(&e, root, 100, 1, pids, 1), 1); /* no more than there is room for */
    assert_int_equal(evidence_pythons(&e, root, 200, 200, pids, 4), 0);
}

static void test_one_process(void **state)
{
    struct evidence_process p;
    char wchan[SUSPECT_WCHAN_BYTES];

    (void)state;
    process(7, "a b) (c", 'D', 3, 5, "/bin/x");
    put(7, "wchan", "nfs_wait_bit_killable");
    assert_true(evidence_read(root, 7, &p));
    assert_true(p.pid == 7 && p.parent == 3 && p.session == 5 && p.state == 'D' && p.ticks == 300);
    evidence_wchan(root, 7, wchan);
    assert_string_equal(wchan, "nfs_wait_bit_killable");
    put(8, "wchan", "0");
    evidence_wchan(root, 8, wchan);
    assert_string_equal(wchan, "");
    put(9, "wchan", "a_very_long_name_of_a_kernel_function_that_nobody_has\n\033[31m");
    evidence_wchan(root, 9, wchan);
    assert_int_equal(strlen(wchan), SUSPECT_WCHAN_BYTES - 1);
    evidence_wchan(root, 10, wchan);
    assert_string_equal(wchan, "");
    assert_false(evidence_read(root, 10, &p) || evidence_is_python(root, 10));
}

/* The real /proc, of a child that is stopped. */
static void test_a_stopped_child(void **state)
{
    cleanup_arena struct arena a = {0};
    struct evidence_process p;
    int status;
    const pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        setsid();
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    const struct evidence e = evidence_scan("/proc", &a);
    assert_int_equal(evidence_main(&e, "/proc", child), child);
    assert_true(evidence_read("/proc", child, &p));
    assert_true(p.state == 'T' && p.parent == getpid() && p.session == child);
    assert_false(evidence_is_python("/proc", child));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(evidence_read("/proc", child, &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_process_of_a_rank, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_one_process, folder_begin, folder_end),
        cmocka_unit_test(test_a_stopped_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
