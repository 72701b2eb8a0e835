/* test_output.c - torchrun's files and console, and as process 1 of a container. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "run.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Short or long, in their order, each under one prefix, whatever other ranks write meanwhile. */
static void test_tee_keeps_lines_whole(void **state)
{
    enum { LONG = 300000 };
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct run r;
    int lines[4] = {0}, longs[4] = {0};

    (void)state;
    assert_int_equal(
        run_once(RUN_ARGS("--nproc-per-node=4", "--log-dir=logs", "--rdzv-id=../../b", "-t", "3"),
                 "i=0; while [ $i -lt 500 ]; do echo line $i of $RANK is here; i=$((i+1)); done; "
                 "for i in 1 2; do head -c 300000 /dev/zero | tr '\\0' $RANK; echo; done; "
                 "echo bad >&2; printf open",
                 &r),
        0);
    for (char *p = r.out.data, *end; *p; p = end + 1) {
        int rank = -1, prefix = 0;
        char want[64];
        end = strchr(p, '\n');
        assert_non_null(end);
        *end = '\0';
        assert_int_equal(sscanf(p, "[default%d]:%n", &rank, &prefix), 1);
        assert_in_range(rank, 0, 3);
        p += prefix;
        if (*p == 'l') {
            snprintf(want, sizeof(want), "line %d of %d is here", lines[rank]++, rank);
            assert_string_equal(p, want);
        } else if (strcmp(p, "open") != 0) {
            assert_int_equal(strspn(p, (const char[]){(char)('0' + rank), '\0'}), LONG);
            assert_int_equal(end - p, LONG);
            longs[rank]++;
        }
    }
    for (int i = 0; i < 4; i++)
        assert_true(lines[i] == 500 && longs[i] == 2);
    run_says(&r.err, "[default2]:bad\n");
    run_expect_file(&r, "logs/.._.._b_*/attempt_0/2/stderr.log", "bad\n");
    run_read(&r, "logs/.._.._b_*/attempt_0/3/stdout.log", &text);
    run_says(&text, "line 499 of 3 is here\n333");
    assert_memory_equal(text.data + text.len - 6, "3\nopen", 6);
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
    run_expect(RUN_ARGS("--nproc-per-node=1"), script, 1,
               "cannot create a folder for logs in /proc (--log-dir)");
}

/* It holds error files alone. When the disk has become full, or something else is in its place, ranks start again with the last
 * attempt's, emptied: by its path the trainer knows the launch. */
static void test_a_restart_needs_no_folder(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(
        run_once(RUN_ARGS("--nproc-per-node=1", "--max-restarts=1"),
                 "[ -e \"$TORCHELASTIC_ERROR_FILE\" ] && exit 9; echo "
                 "${TORCHELASTIC_ERROR_FILE##*/torchelastic_??????}; "
                 "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then : > \"$TORCHELASTIC_ERROR_FILE\"; "
                 ": > \"${TORCHELASTIC_ERROR_FILE%/attempt_0/*}/attempt_1\"; exit 1; fi",
                 &r),
        0);
    assert_string_equal(buf_str(&r.out), "/attempt_0/0/error.json\n/attempt_0/0/error.json\n");
    run_release(&r);
    run_expect(RUN_ARGS("--nproc-per-node=1", "--max-restarts=1", "--redirects=1"),
               "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then "
               ": > \"${TORCHELASTIC_ERROR_FILE%/attempt_0/*}/attempt_1\"; exit 1; fi",
               1, "/attempt_1");
}

/* A rank that changes its working folder (as Hydra does) leaves its exception where the launcher reads it. */
static void test_a_rank_may_change_its_folder(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1", "--log-dir=logs"),
                              "cd / && echo '{\"message\": {\"message\": \"ValueError: no such table\"}}' > "
                              "\"$TORCHELASTIC_ERROR_FILE\"; exit 3",
                              &r),
                     3);
    run_blames(&r, 0, 3, "ValueError: no such table");
    run_release(&r);
}

static void test_redirects_and_filter(void **state)
{
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
    run_says(&r.out, "out 5.");
    run_says(&r.err, "err 0.");
    assert_null(strstr(buf_str(&r.err), "err 11."));
    run_expect_file(&r, "logs/*/attempt_1/11/stderr.log", "err 11.\n");
    run_expect_file(&r, "logs/*/attempt_1/4/stdout.log", "out 4.\n");
    run_release(&r);
}

/* Lines of teed ranks that are shown, over all of them; each attempt has its own file. */
static void test_filtered_copies(void **state)
{
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
    snprintf(want, sizeof(want), "<%s/1> step 1 of 0\n<%s/1> a,b\n", host, host);
    run_expect_file(&r, "logs/*/attempt_0/filtered_stdout.log", want);
    snprintf(want, sizeof(want), "<%s/1> step 1 of 1\n<%s/1> a,b\n", host, host);
    run_expect_file(&r, "logs/*/attempt_1/filtered_stdout.log", want);
    snprintf(want, sizeof(want), "<%s/1> bad 1\n", host);
    run_expect_file(&r, "logs/*/attempt_1/filtered_stderr.log", want);
    run_release(&r);
    /* Nothing is teed: a file without lines, as from PyTorch. */
    assert_int_equal(run_once(RUN_ARGS("--log-dir=logs", "--duplicate-stdout-filters=x"), "echo x", &r), 0);
    run_expect_file(&r, "logs/*/attempt_0/filtered_stdout.log", "");
    assert_false(exists(&r, "logs/*/attempt_0/filtered_stderr.log"));
    run_release(&r);
}

/* Nobody requested files: what a rank left is read, and gone. */
static void test_error_file_is_removed(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--max-restarts=1"),
                              "echo '{\"message\":\"again\"}' >$TORCHELASTIC_ERROR_FILE; exit 1", &r),
                     1);
    run_says(&r.err, "traceback : again\n");
    assert_false(exists(&r, "torchelastic_*"));
    run_release(&r);
}

/* A small pipe without a reader; full: it has no room either. */
static void stuck_pipe(int ends[2], bool full)
{
    char bytes[4096] = "";

    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, sizeof(bytes)) > 0);
    if (full)
        assert_int_equal(write(ends[1], bytes, sizeof(bytes)), sizeof(bytes));
}

/* A console that nobody reads holds up the ranks that tee to it, and not the launcher's answer to SIGTERM. */
static void test_console_that_nobody_reads(void **state)
{
    int ends[2];
    struct run r;

    (void)state;
    stuck_pipe(ends, false);
    run_start_on(&r, RUN_ARGS("--nproc-per-node=2", "-t3", "--shutdown-timeout=1000"),
                 "head -c 1000000 /dev/zero | tr '\\0' '\\n' & touch up$RANK; wait; touch never", ends[1],
                 -1);
    assert_true(run_wait_file(&r, "up0") && run_wait_file(&r, "up1"));
    /* The pipe is full: the launcher has met the wall. */
    struct pollfd pfd = {.fd = ends[1], .events = POLLOUT};
    while (poll(&pfd, 1, 0) > 0)
        usleep(1000);
    kill(r.pid, SIGTERM);
    assert_int_equal(run_wait(&r), 143);
    assert_false(run_has_file(&r, "never"));
    run_release(&r);
    close(ends[0]);
    close(ends[1]);
}

/* The launcher's own messages never block it: before the ranks start (OMP_NUM_THREADS is not set), when it
 * gets a signal, when it starts again, when it reports. */
static void test_launchers_own_words_on_a_full_pipe(void **state)
{
    const char *const tees[] = {"--tee=0", "--tee=3"};
    int ends[2];
    struct run r;

    (void)state;
    stuck_pipe(ends, true);
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

/* A reader that is only slow gets all of it, after what the ranks wrote. False: it was slower than the launcher waits. */
static bool own_words_come_last(void)
{
    enum { WAITS_MS = 2000 }; /* not as long as AGENT_FLUSH_MS */
    cleanup_buf struct buf text = BUF_INIT(8 << 20);
    char bytes[4096];
    struct err err = {0};
    struct run r;
    int ends[2];
    ssize_t n;

    stuck_pipe(ends, false);
    run_start_on(&r, RUN_ARGS("--tee=3"), "seq 40000 >&2; exit 3", -1, ends[1]);
    close(ends[1]);
    int64_t begin_ms = 0;
    while ((n = read(ends[0], bytes, sizeof(bytes))) > 0) {
        begin_ms = begin_ms ? begin_ms : clock_mono_ms();
        assert_int_equal(buf_append(&text, bytes, (size_t)n, &err), 0);
    }
    const bool in_time = clock_mono_ms() - begin_ms < WAITS_MS;
    assert_int_equal(run_wait(&r), 3);
    const char *last = strstr(buf_str(&text), "[default0]:40000\n"),
               *failed = strstr(buf_str(&text), "FAILED");
    if (in_time || failed)
        assert_true(last && failed > last);
    run_release(&r);
    close(ends[0]);
    return failed;
}

static void test_launchers_own_words_come_last(void **state)
{
    int tries = 0;

    (void)state;
    while (!own_words_come_last())
        assert_true(++tries < 20);
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
        cmocka_unit_test(test_a_restart_needs_no_folder),
        cmocka_unit_test(test_a_rank_may_change_its_folder),
        cmocka_unit_test(test_redirects_and_filter),
        cmocka_unit_test(test_filtered_copies),
        cmocka_unit_test(test_error_file_is_removed),
        cmocka_unit_test(test_console_that_nobody_reads),
        cmocka_unit_test(test_launchers_own_words_on_a_full_pipe),
        cmocka_unit_test(test_launchers_own_words_come_last),
        cmocka_unit_test(test_as_process_1),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
