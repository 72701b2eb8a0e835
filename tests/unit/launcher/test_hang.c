/* test_hang.c - the real launcher and ranks that hang: who is blamed, and what is no hang. Limits are short; what a test waits for
 * is that the launcher ends, whenever that is. */
#include "common/cleanup.h"
#include "crew.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT "TORCHKEEPER_PROGRESS_TIMEOUT"

static int set_limit(void **state)
{
    *state = NULL;
    return setenv(LIMIT, "1", 1);
}

static int unset_limit(void **state)
{
    (void)state;
    unsetenv("PTJ_TERMINATION_LOG");
    return unsetenv(LIMIT);
}

static int count(const struct run *r, const char *what)
{
    int n = 0;

    for (const char *p = buf_str(&r->out); (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* The code is ours, not that of our kills, the ranks are not started again, and the report for Kubernetes has the reason. */
static void test_a_stopped_rank(void **state)
{
    cleanup_buf struct buf report = BUF_INIT(4096);
    struct run r;

    (void)state;
    setenv("PTJ_TERMINATION_LOG", "report", 1);
    run_start(&r, RUN_ARGS("--nproc-per-node=3", "--max-restarts=3"),
              "touch here$RANK; case $RANK in "
              "0) until [ -e here1 ] && [ -e here2 ]; do echo .; sleep 0.05; done ;; "
              "*) until [ -e said$((RANK - 1)) ]; do sleep 0.01; done ;; esac; "
              "echo rank $RANK; touch said$RANK; [ $RANK = 1 ] && kill -STOP $$; exec sleep 1000");
    assert_int_equal(run_wait(&r), 138);
    run_blames(&r, 1, 138, "no progress for 1 s: rank 1 is stopped (T)");
    run_says(&r.err, "torchrun: no progress for 1 s: no output of any rank");
    run_says(&r.err, "; last line: rank 2\n");
    assert_int_equal(count(&r, "rank "), 3);
    run_read(&r, "report", &report);
    run_says(&report, "{\"rank\":1,\"exitCode\":138,");
    run_says(&report, "\"message\":\"no progress for 1 s: rank 1 is stopped (T)\",\"noProgress\":true}\n");
    run_release(&r);
}

/* A rank that ended well does nothing any more; the rest hangs. */
static void test_others_have_ended(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2"), "[ $RANK = 0 ] && exit 0; kill -STOP $$", &r),
                     138);
    run_blames(&r, 1, 138, "rank 1 is stopped (T)");
    run_says(&r.err, "torchrun: rank 0 (pid ");
    run_release(&r);
}

/* Any rank's output is a sign of life, wherever it goes. */
static void test_output_is_a_sign(void **state)
{
    static const char script[] =
        "[ $RANK = 0 ] && exec sleep 3.5; i=0; while [ $i -lt 35 ]; do echo $i; sleep 0.1; "
        "i=$((i+1)); done";
    struct run runs[3];

    (void)state;
    setenv(LIMIT, "2", 1);
    run_start(&runs[0], RUN_ARGS("--nproc-per-node=2"), script);
    run_start(&runs[1], RUN_ARGS("--nproc-per-node=2", "--log-dir=logs", "--redirects=3"), script);
    run_start(&runs[2], RUN_ARGS("--nproc-per-node=2", "--local-ranks-filter=0"), script);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_wait(&runs[i]), 0);
        run_release(&runs[i]);
    }
}

/* So is a change of the progress file, of a rank that does nothing else for longer than the limit, whether anybody can request it
 * or not. */
static void test_the_progress_file_is_a_sign(void **state)
{
    struct crew c; /* for its port */
    struct run runs[2];
    char port[12];

    (void)state;
    setenv(LIMIT, "2", 1);
    crew_open(&c, 1);
    snprintf(port, sizeof(port), "%d", c.port);
    for (int served = 0; served < 2; served++) {
        const char *name = served ? "TORCHKEEPER_PROGRESS_PORT" : "TORCHKEEPER_PROGRESS_FILE";
        setenv(name, served ? port : "progress.json", 1);
        run_start(&runs[served], RUN_ARGS("--nproc-per-node=1"),
                  "i=0; while [ $i -lt 35 ]; do echo \"{\\\"step\\\": $i}\" >new; mv new "
                  "$TORCHKEEPER_PROGRESS_FILE; sleep 0.1; i=$((i+1)); done");
        unsetenv(name);
    }
    for (int served = 0; served < 2; served++) {
        assert_int_equal(run_wait(&runs[served]), 0);
        run_release(&runs[served]);
    }
    crew_release(&c);
}

/* What goes to files only still goes there, and nowhere else. */
static void test_redirected_output_is_kept(void **state)
{
    struct run r;

    (void)state;
    setenv(LIMIT, "100", 1);
    run_start(&r, RUN_ARGS("--nproc-per-node=2", "--log-dir=logs", "--redirects=0:3,1:1", "--rdzv-id=x"),
              "printf 'a\\rb\\nc'; printf 'd\\ne' >&2; cat */*/attempt_0/0/stderr.log >/dev/null");
    assert_int_equal(run_wait(&r), 0);
    assert_string_equal(buf_str(&r.out), "");
    assert_null(strstr(buf_str(&r.err), "failed"));
    run_expect_file(&r, "logs/*/attempt_0/0/stdout.log", "a\rb\nc");
    run_expect_file(&r, "logs/*/attempt_0/0/stderr.log", "d\ne");
    run_release(&r);
}

/* A signal ends the run as always, and a failure too. */
static void test_other_ends(void **state)
{
    struct run r;

    (void)state;
    setenv(LIMIT, "100", 1);
    run_start(&r, RUN_ARGS("--nproc-per-node=1"), "touch here; exec sleep 1000");
    assert_true(run_wait_file(&r, "here"));
    kill(r.pid, SIGTERM);
    assert_int_equal(run_wait(&r), 143);
    run_release(&r);
    run_expect(RUN_ARGS("--nproc-per-node=2"), "[ $RANK = 1 ] && exit 7; exec sleep 1000", 7, NULL);
}

/* Python's stacks name the line, of a process that holds the interpreter's lock for ever too. One in uninterruptible sleep leaves
 * none: the parent of a vfork whose child does nothing is in it, and takes no signal but SIGKILL. Who waits for a file server that
 * is gone may be in it only after the first signal. */
static void test_python(void **state)
{
    static const char script[] =
        "cat >tmp.$RANK <<'E'\n"
        "import ctypes, os, signal, time\n"
        "def step(how):\n"
        "    if how == 'loop':\n"
        "        while True: pass\n"
        "    if how == 'fifo':\n"
        "        os.mkfifo('fifo')\n"
        "        open('fifo').read()\n"
        "    if how == 'lock':\n"
        "        ctypes.PyDLL(None).pause()\n"
        "    if how == 'late':\n"
        "        signal.signal(signal.SIGABRT, lambda *_: step('disk'))\n"
        "        time.sleep(1000)\n"
        "    if ctypes.PyDLL(None).vfork() == 0: time.sleep(1000)\n"
        "def deep(n):\n"
        "    deep(n - 1) if n else step(os.environ['HOW'])\n"
        "rank = os.environ['RANK']\n"
        "open('here.' + rank, 'w').close()\n"
        "if rank == '1':\n"
        "    deep(50)\n"
        "time.sleep(1000)\n"
        "E\n"
        "mv tmp.$RANK a.py\n"
        "for other in 0 1 2; do while [ ! -e here.$other ]; do echo .; sleep 0.1; done; done &\n"
        "[ $RANK = 1 ] || exec python3 a.py\n"
        "python3 a.py; echo over"; /* a child of the shell */
    static const char *const ways[][2] = {
        {"loop", "no progress for 2 s: rank 1 loops in a.py:4 step()"},
        {"fifo", "no progress for 2 s: rank 1 is in a.py:7 step() (S"},
        {"lock", "no progress for 2 s: rank 1 is in a.py:9 step() (S"},
        {"disk", "no progress for 2 s: rank 1 is in uninterruptible sleep (D"},
        {"late", "no progress for 2 s: rank 1 is in uninterruptible sleep (D"}};
    struct run runs[ARRAY_LEN(ways)];

    (void)state;
    setenv(LIMIT, "2", 1);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        setenv("HOW", ways[i][0], 1);
        run_start(&runs[i], RUN_ARGS("--nproc-per-node=3"), script);
    }
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        assert_int_equal(run_wait(&runs[i]), 138);
        run_blames(&runs[i], 1, 138, ways[i][1]);
        run_release(&runs[i]);
    }
}

/* Two nodes: the one with the rank at fault ends with 138, the other with 140, and both name it, whatever restarts are left. */
static void test_two_nodes(void **state)
{
    struct crew c;

    (void)state;
    setenv("PTJ_TERMINATION_LOG", "report", 1);
    crew_open(&c, 2);
    crew_start_all(&c, RUN_ARGS("--nnodes=2", "--nproc-per-node=2", "--max-restarts=3"),
                   "cd $SHARED; touch $RANK; "
                   "until [ -e 0 ] && [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do echo .; sleep 0.05; done; "
                   "echo rank $RANK; [ $RANK = 3 ] && kill -STOP $$; exec sleep 1000");
    assert_int_equal(crew_wait(&c, 1), 138);
    assert_int_equal(crew_wait(&c, 0), 140);
    for (int i = 0; i < 2; i++) {
        run_blames(&c.runs[i], 3, 138, "no progress for 1 s: rank 3 is stopped (T)");
        assert_int_equal(count(&c.runs[i], "rank "), 2);
        assert_int_equal(run_has_file(&c.runs[i], "report"), i == 1);
    }
    crew_release(&c);
}

/* Node 1 has been quiet all the time when node 0 ends well, and continues for half of the limit. */
static void test_the_end_of_a_node_is_a_sign(void **state)
{
    struct crew c;

    (void)state;
    setenv(LIMIT, "4",
           1); /* 40 times what a rank sleeps: a busy machine may keep it and the launcher waiting */
    crew_open(&c, 2);
    crew_start_all(
        &c, RUN_ARGS("--nnodes=2"),
        "if [ $NODE = 1 ]; then while [ ! -e $SHARED/end ]; do sleep 0.1; done; exec sleep 2; fi; i=0; while "
        "[ $i -lt 60 ]; do echo $i; sleep 0.1; i=$((i+1)); done; touch $SHARED/end");
    crew_end(&c, 0);
}

int main(int argc, char **argv)
{
#define HANG_TEST(f) cmocka_unit_test_setup_teardown(f, set_limit, unset_limit)
    const struct CMUnitTest tests[] = {
        HANG_TEST(test_a_stopped_rank),
        HANG_TEST(test_others_have_ended),
        HANG_TEST(test_output_is_a_sign),
        HANG_TEST(test_the_progress_file_is_a_sign),
        HANG_TEST(test_redirected_output_is_kept),
        HANG_TEST(test_other_ends),
        HANG_TEST(test_python),
        HANG_TEST(test_two_nodes),
        HANG_TEST(test_the_end_of_a_node_is_a_sign),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
