/* test_output.c - torchrun's files and console, and as process 1 of a container. */
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "run.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* The text of the one file that the pattern names below the run's folder. */
static void read_one(const struct run *r, const char *pattern, struct buf *out)
{
    char full[200];
    glob_t g;
    struct err err = {0};

    snprintf(full, sizeof(full), "%s/%s", r->dir, pattern);
    assert_int_equal(glob(full, 0, NULL, &g), 0);
    assert_int_equal(g.gl_pathc, 1);
    buf_clear(out);
    assert_int_equal(fs_read(g.gl_pathv[0], out, &err), 0);
    globfree(&g);
}

static bool exists(const struct run *r, const char *pattern)
{
    char full[200];
    glob_t g;

    snprintf(full, sizeof(full), "%s/%s", r->dir, pattern);
    bool found = glob(full, 0, NULL, &g) == 0;
    if (found)
        globfree(&g);
    return found;
}

static void test_tee_keeps_lines_whole(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct run r;
    int lines[4] = {0};

    (void)state;
    assert_int_equal(
        run_once(RUN_ARGS("--nproc-per-node=4", "--log-dir=logs", "--rdzv-id=../../b", "-t", "3"),
                 "i=0; while [ $i -lt 500 ]; do echo line $i of $RANK is here; i=$((i+1)); done; "
                 "echo bad >&2; printf open",
                 &r),
        0);
    for (char *p = r.out.data, *end; *p; p = end + 1) {
        int rank = -1, n = -1, of = -2, used = 0;
        end = strchr(p, '\n');
        assert_non_null(end);
        *end = '\0';
        if (sscanf(p, "[default%d]:open%n", &rank, &used) == 1 && used == (int)strlen(p))
            continue;
        assert_int_equal(sscanf(p, "[default%d]:line %d of %d is here%n", &rank, &n, &of, &used), 3);
        assert_int_equal(used, strlen(p));
        assert_true(rank == of && rank >= 0 && rank < 4 && n == lines[rank]);
        lines[rank]++;
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(lines[i], 500);
    assert_non_null(strstr(buf_str(&r.err), "[default2]:bad\n"));
    read_one(&r, "logs/.._.._b_*/attempt_0/2/stderr.log", &text);
    assert_string_equal(buf_str(&text), "bad\n");
    read_one(&r, "logs/.._.._b_*/attempt_0/3/stdout.log", &text);
    assert_non_null(strstr(buf_str(&text), "line 499 of 3 is here\nopen"));
    run_release(&r);
}

/* Without a folder for files the console has it all; only what has to go to files needs one. */
static void test_tee_needs_no_folder(void **state)
{
    static const struct {
        const char *tee, *out, *err;
    } cases[] = {{"3", "[default0]:one\n", "[default0]:two\n"}, {"0:1", "[default0]:one\n", "two\n"}};
    struct run r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char script[300];
        snprintf(script, sizeof(script),
                 "TMPDIR=/proc exec %s --tee=%s sh -c 'echo one; echo two >&2; [ -z "
                 "\"$TORCHELASTIC_ERROR_FILE\" ]'",
                 run_torchrun, cases[i].tee);
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1"), script, &r), 0);
        assert_string_equal(buf_str(&r.out), cases[i].out);
        assert_string_equal(buf_str(&r.err), cases[i].err);
        run_release(&r);
    }
    char script[200];
    snprintf(script, sizeof(script), "TMPDIR=/proc exec %s --redirects=1 true", run_torchrun);
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1"), script, &r), 1);
    assert_non_null(strstr(buf_str(&r.err), "cannot create a folder for logs in /proc (--log-dir)"));
    run_release(&r);
}

/* Whole, under one prefix, whatever other ranks write meanwhile. */
static void test_tee_of_long_lines(void **state)
{
    enum { LONG = 300000, LINES = 3 };
    struct run r;
    int lines[2] = {0};

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2", "-t", "1"),
                              "for i in 1 2 3; do head -c 300000 /dev/zero | tr '\\0' $RANK; echo; done", &r),
                     0);
    for (char *p = r.out.data, *end; *p; p = end + 1) {
        int rank = -1, used = 0;
        end = strchr(p, '\n');
        assert_non_null(end);
        assert_int_equal(sscanf(p, "[default%d]:%n", &rank, &used), 1);
        assert_int_equal(end - p - used, LONG);
        assert_int_equal(strspn(p + used, rank ? "1" : "0"), LONG);
        lines[rank]++;
    }
    assert_true(lines[0] == LINES && lines[1] == LINES);
    run_release(&r);
}

static void test_redirects_and_filter(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct run r;

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=12", "--log-dir=logs", "-r", "0:1,11:3",
                                       "--local-ranks-filter=0,5,11", "--max-restarts=1"),
                              "echo out $RANK.; echo err $RANK. >&2; [ $TORCHELASTIC_RESTART_COUNT = 1 ]",
                              &r),
                     0);
    assert_null(strstr(buf_str(&r.out), "out 0."));
    assert_null(strstr(buf_str(&r.out), "out 11."));
    assert_null(strstr(buf_str(&r.out), "out 4."));
    assert_non_null(strstr(buf_str(&r.out), "out 5."));
    assert_non_null(strstr(buf_str(&r.err), "err 0."));
    assert_null(strstr(buf_str(&r.err), "err 11."));
    read_one(&r, "logs/*/attempt_1/11/stderr.log", &text);
    assert_string_equal(buf_str(&text), "err 11.\n");
    read_one(&r, "logs/*/attempt_1/4/stdout.log", &text);
    assert_string_equal(buf_str(&text), "out 4.\n");
    run_release(&r);
}

/* Lines of teed ranks that are shown, over all of them; each attempt has its own file. */
static void test_filtered_copies(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct run r;

    (void)state;
    assert_int_equal(
        run_once(RUN_ARGS("--nproc-per-node=3", "--log-dir=logs", "-t", "0:3,1:3", "--local-ranks-filter=1,2",
                          "--max-restarts=1", "--duplicate-stdout-filters=step,a,,b",
                          "--duplicate_stderr_filters", "bad",
                          "--log-line-prefix-template=<${hostname}/${rank}> "),
                 "echo start; echo step $RANK of $TORCHELASTIC_RESTART_COUNT; echo a,b; echo bad $RANK >&2; "
                 "echo good >&2; [ $RANK != 1 ]",
                 &r),
        1);
    char host[65] = "", want[300];
    gethostname(host, sizeof(host) - 1);
    read_one(&r, "logs/*/attempt_0/filtered_stdout.log", &text);
    snprintf(want, sizeof(want), "<%s/1> step 1 of 0\n<%s/1> a,b\n", host, host);
    assert_string_equal(buf_str(&text), want);
    read_one(&r, "logs/*/attempt_1/filtered_stdout.log", &text);
    snprintf(want, sizeof(want), "<%s/1> step 1 of 1\n<%s/1> a,b\n", host, host);
    assert_string_equal(buf_str(&text), want);
    read_one(&r, "logs/*/attempt_1/filtered_stderr.log", &text);
    snprintf(want, sizeof(want), "<%s/1> bad 1\n", host);
    assert_string_equal(buf_str(&text), want);
    run_release(&r);
    /* Nothing is teed: a file without lines, as from PyTorch. */
    assert_int_equal(run_once(RUN_ARGS("--log-dir=logs", "--duplicate-stdout-filters=x"), "echo x", &r), 0);
    read_one(&r, "logs/*/attempt_0/filtered_stdout.log", &text);
    assert_string_equal(buf_str(&text), "");
    assert_false(exists(&r, "logs/*/attempt_0/filtered_stderr.log"));
    run_release(&r);
}

static void test_error_file_is_told(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2", "--log-dir=logs"),
                              "if [ $RANK = 1 ]; then echo '{\"message\":{\"message\":\"boom at 7\"}}' "
                              ">$TORCHELASTIC_ERROR_FILE; exit 1; fi; sleep 1000",
                              &r),
                     1);
    assert_non_null(strstr(buf_str(&r.err), "traceback : boom at 7\n"));
    assert_true(exists(&r, "logs/*/attempt_0/1/error.json"));
    run_release(&r);
    /* Nobody asked for files: they are read, and gone. */
    assert_int_equal(run_once(RUN_ARGS("--max-restarts=1"),
                              "echo '{\"message\":\"again\"}' >$TORCHELASTIC_ERROR_FILE; exit 1", &r),
                     1);
    assert_non_null(strstr(buf_str(&r.err), "traceback : again\n"));
    assert_false(exists(&r, "torchelastic_*"));
    run_release(&r);
}

/* A console that nobody reads holds up the ranks that tee to it, and not the launcher's answer to SIGTERM. */
static void test_console_that_nobody_reads(void **state)
{
    int ends[2];
    struct run r;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
    run_start_on(&r, RUN_ARGS("--nproc-per-node=2", "-t3", "--shutdown-timeout=1000"),
                 "head -c 1000000 /dev/zero | tr '\\0' '\\n' & touch up$RANK; wait; touch never", ends[1],
                 -1);
    assert_true(run_wait_file(&r, "up0") && run_wait_file(&r, "up1"));
    /* The pipe is full: the launcher has met the wall. */
    struct pollfd pfd = {.fd = ends[1], .events = POLLOUT};
    while (poll(&pfd, 1, 0) > 0)
        sched_yield();
    kill(r.pid, SIGTERM);
    assert_int_equal(run_wait(&r), 143);
    assert_false(run_has_file(&r, "never"));
    run_release(&r);
    close(ends[0]);
    close(ends[1]);
}

/* A pipe with no room and no reader. */
static void full_pipe(int ends[2])
{
    char bytes[4096] = "";

    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], bytes, sizeof(bytes)) > 0)
        ;
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
}

/* What the launcher itself has to say never holds it up: before the ranks start (OMP_NUM_THREADS is not set), when it
 * is told to stop, when it starts again, when it reports. */
static void test_launchers_own_words_on_a_full_pipe(void **state)
{
    const char *const tees[] = {"--tee=0", "--tee=3"};
    int ends[2];
    struct run r;

    (void)state;
    full_pipe(ends);
    for (size_t i = 0; i < 2; i++) {
        run_start_on(&r, RUN_ARGS("--nproc-per-node=2", tees[i], "--shutdown-timeout=1000"),
                     "touch up$RANK; exec sleep 1000", ends[1], ends[1]);
        assert_true(run_wait_file(&r, "up0") && run_wait_file(&r, "up1"));
        kill(r.pid, SIGTERM);
        assert_int_equal(run_wait(&r), 143);
        run_release(&r);
        run_start_on(&r, RUN_ARGS("--nproc-per-node=2", tees[i], "--max-restarts=1"), "exit 3", ends[1],
                     ends[1]);
        assert_int_equal(run_wait(&r), 3);
        run_release(&r);
    }
    run_start_on(&r, RUN_ARGS("--no-python", "/no/such/program"), NULL, ends[1], ends[1]);
    assert_int_equal(run_wait(&r), 1);
    run_release(&r);
    close(ends[0]);
    close(ends[1]);
}

/* A reader that is only slow gets all of it, after what the ranks wrote. */
static void test_launchers_own_words_come_last(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(8 << 20);
    char bytes[4096];
    struct err err = {0};
    struct run r;
    int ends[2];
    ssize_t n;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
    run_start_on(&r, RUN_ARGS("--tee=3"), "seq 40000 >&2; exit 3", -1, ends[1]);
    close(ends[1]);
    while ((n = read(ends[0], bytes, sizeof(bytes))) > 0)
        assert_int_equal(buf_append(&text, bytes, (size_t)n, &err), 0);
    assert_int_equal(run_wait(&r), 3);
    const char *last = strstr(buf_str(&text), "[default0]:40000\n");
    assert_non_null(last);
    assert_ptr_equal(strstr(buf_str(&text), "FAILED"), strstr(last, "FAILED"));
    assert_non_null(strstr(last, "FAILED"));
    run_release(&r);
    close(ends[0]);
}

/* As a container's first process: no default action for signals, orphans of all kinds. */
static void test_as_process_1(void **state)
{
    struct run r;
    int status;

    (void)state;
    pid_t holder = fork();
    if (holder == 0) {
        if (unshare(CLONE_NEWPID) < 0)
            _exit(77);
        run_start(&r, RUN_ARGS("--nproc-per-node=2", "--shutdown-timeout=1000"),
                  "sh -c 'true & exit 0'; trap 'sleep 0.1; exit 9' TERM; sleep 1000 & touch up$RANK; wait");
        if (!run_wait_file(&r, "up0") || !run_wait_file(&r, "up1"))
            _exit(1);
        kill(r.pid, SIGTERM);
        int code = run_wait(&r);
        run_release(&r);
        _exit(code);
    }
    assert_int_equal(waitpid(holder, &status, 0), holder);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* not allowed here: needs root */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 143);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tee_keeps_lines_whole),
        cmocka_unit_test(test_tee_needs_no_folder),
        cmocka_unit_test(test_tee_of_long_lines),
        cmocka_unit_test(test_redirects_and_filter),
        cmocka_unit_test(test_filtered_copies),
        cmocka_unit_test(test_error_file_is_told),
        cmocka_unit_test(test_console_that_nobody_reads),
        cmocka_unit_test(test_launchers_own_words_on_a_full_pipe),
        cmocka_unit_test(test_launchers_own_words_come_last),
        cmocka_unit_test(test_as_process_1),
    };
    if (argc != 2 || !(run_torchrun = realpath(argv[1], NULL)))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(run_torchrun);
    return failed;
}
