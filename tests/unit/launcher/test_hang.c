/* test_hang.c - the real launcher and ranks that hang: who is blamed, and what is no hang. Limits are short. Where a rank lost its
 * core for longer, so that the launcher rightly ended the round before all ranks stood as the test wants, it tries again with a
 * longer limit. Another wrong end fails at once. */
#include "common/cleanup.h"
#include "crew.h"
#include "patience.h"
#include "process_state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT "TORCHKEEPER_PROGRESS_TIMEOUT"

static int unset_limit(void **state)
{
    (void)state;
    unsetenv("PTJ_TERMINATION_LOG");
    return unsetenv(LIMIT);
}

/* And a message that names it. */
static void set_limit(int64_t ms, const char *message, char said[static 128])
{
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)(ms / 1000));
    setenv(LIMIT, text, 1);
    snprintf(said, 128, "no progress for %s s: %s", text, message);
}

static int count_in(const struct buf *text, const char *what)
{
    int n = 0;

    for (const char *p = buf_str(text); (p = strstr(p, what)); p++)
        n++;
    return n;
}

static int count(const struct run *r, const char *what)
{
    return count_in(&r->out, what);
}

/* For a script: wait until the process whose number is in that file is stopped. */
#define UNTIL_STOPPED(file)                                                                                  \
    "until grep -q '^State:.T' /proc/$(cat " file ")/status; do sleep 0.01; done 2>/dev/null; "

/* The code is ours, not that of our kills, the ranks are not started again, and the report for Kubernetes has the reason. Rank 2
 * speaks when rank 1 is stopped. False: that was not heard. */
static bool stopped_rank_is_blamed(int64_t ms)
{
    cleanup_buf struct buf report = BUF_INIT(4096);
    char said[128];
    struct run r;

    set_limit(ms, "rank 1 is stopped (T)", said);
    setenv("PTJ_TERMINATION_LOG", "report", 1);
    run_start(
        &r, RUN_ARGS("--nproc-per-node=3", "--max-restarts=3"),
        "echo $$ >tmp$RANK; mv tmp$RANK here$RANK; case $RANK in "
        "0) until [ -e here1 ] && [ -e here2 ]; do echo .; sleep 0.05; done ;; "
        "1) until [ -e said0 ]; do sleep 0.01; done ;; "
        "*) until [ -e here1 ]; do sleep 0.01; done; " UNTIL_STOPPED(
            "here1") ";; esac; "
                     "echo rank $RANK; touch said$RANK; [ $RANK = 1 ] && kill -STOP $$; exec sleep 1000");
    assert_int_equal(run_wait(&r), 138);
    const bool heard = strstr(buf_str(&r.err), "; last line: rank 2\n");
    if (heard) {
        run_blames(&r, 1, 138, said);
        snprintf(strchr(said, ':'), 64, ": no output of any rank");
        run_says(&r.err, said);
        assert_int_equal(count(&r, "rank "), 3);
        run_read(&r, "report", &report);
        run_says(&report, "{\"rank\":1,\"exitCode\":138,");
        run_says(&report, ": rank 1 is stopped (T)\",\"noProgress\":true}\n");
    }
    run_release(&r);
    return heard;
}

static void test_a_stopped_rank(void **state)
{
    (void)state;
    patience_until(stopped_rank_is_blamed, 1000);
}

/* A rank that ended well, when the other was stopped, does nothing any more; the rest hangs. False: its end was not noticed. */
static bool rest_is_blamed(int64_t ms)
{
    char said[128];
    struct run r;

    set_limit(ms, "rank 1 is stopped (T)", said);
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2"),
                              "if [ $RANK = 1 ]; then echo $$ >tmp; mv tmp one; kill -STOP $$; fi; "
                              "until [ -e one ]; do sleep 0.01; done; " UNTIL_STOPPED("one") "exit 0",
                              &r),
                     138);
    const char *first = strstr(buf_str(&r.err), "torchrun: rank 0 (pid ");
    const bool ended = first && strncmp(strchr(first, ')'), "): has ended", 12) == 0;
    if (ended)
        run_blames(&r, 1, 138, said);
    run_release(&r);
    return ended;
}

static void test_others_have_ended(void **state)
{
    (void)state;
    patience_until(rest_is_blamed, 1000);
}

/* Ranks that give a sign every tenth of a second, and last longer than the limit. */
static void set_signs(int64_t ms)
{
    char text[16], ignored[128];

    set_limit(ms, "", ignored);
    snprintf(text, sizeof(text), "%d", (int)(ms * 7 / 400));
    setenv("SIGNS", text, 1);
}

/* Whether all of them end well; one that lost its core for longer than the limit may be ended. */
static bool last_longer(struct run *runs, int n)
{
    bool all = true;

    for (int i = 0; i < n; i++) {
        const int code = run_wait(&runs[i]);
        if (code && code != 138)
            fail_msg("run %d ended with %d: %s", i, code, buf_str(&runs[i].err));
        all = all && !code;
        run_release(&runs[i]);
    }
    return all;
}

/* Any rank's output is a sign of life, wherever it goes. Rank 0 has none of its own. */
static bool output_is_a_sign(int64_t ms)
{
    static const char script[] =
        "[ $RANK = 0 ] && { until [ -e end ]; do sleep 0.1; done; exit; }; i=0; "
        "while [ $i -lt $SIGNS ]; do echo $i; sleep 0.1; i=$((i+1)); done; touch end";
    struct run runs[3];

    set_signs(ms);
    run_start(&runs[0], RUN_ARGS("--nproc-per-node=2"), script);
    run_start(&runs[1], RUN_ARGS("--nproc-per-node=2", "--log-dir=logs", "--redirects=3"), script);
    run_start(&runs[2], RUN_ARGS("--nproc-per-node=2", "--local-ranks-filter=0"), script);
    return last_longer(runs, 3);
}

static void test_output_is_a_sign(void **state)
{
    (void)state;
    patience_until(output_is_a_sign, 2000);
}

/* So is a change of the progress file, of a rank that does nothing else for longer than the limit, whether anybody can request it
 * or not. */
static bool progress_file_is_a_sign(int64_t ms)
{
    struct crew c; /* for its port */
    struct run runs[2];
    char port[12];

    set_signs(ms);
    crew_open(&c, 1);
    snprintf(port, sizeof(port), "%d", c.port);
    for (int served = 0; served < 2; served++) {
        const char *name = served ? "TORCHKEEPER_PROGRESS_PORT" : "TORCHKEEPER_PROGRESS_FILE";
        setenv(name, served ? port : "progress.json", 1);
        run_start(&runs[served], RUN_ARGS("--nproc-per-node=1"),
                  "i=0; while [ $i -lt $SIGNS ]; do echo \"{\\\"step\\\": $i}\" >new; mv new "
                  "$TORCHKEEPER_PROGRESS_FILE; sleep 0.1; i=$((i+1)); done");
        unsetenv(name);
    }
    const bool both = last_longer(runs, 2);
    crew_release(&c);
    return both;
}

static void test_the_progress_file_is_a_sign(void **state)
{
    (void)state;
    patience_until(progress_file_is_a_sign, 2000);
}

/* What goes to files only still goes there, and nowhere else. */
static void test_redirected_output_is_kept(void **state)
{
    struct run r;

    (void)state;
    setenv(LIMIT, "200", 1);
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
    setenv(LIMIT, "200", 1);
    run_start(&r, RUN_ARGS("--nproc-per-node=1"), "touch here; exec sleep 1000");
    assert_true(run_wait_file(&r, "here"));
    kill(r.pid, SIGTERM);
    assert_int_equal(run_wait(&r), 143);
    run_release(&r);
    run_expect(RUN_ARGS("--nproc-per-node=2"), "[ $RANK = 1 ] && exit 7; exec sleep 1000", 7, NULL);
}

/* Until Python, whose number the file has, is in the state for good: it asks for nothing else before. A loop is one that has used
 * some CPU time since. False: the run is over. */
static bool wait_state(const struct run *r, char want)
{
    long begin = -1, ticks = 0;

    if (!run_wait_file(r, "python"))
        return false;
    for (int seen = 0; seen < 3; usleep(10000)) {
        const char state = process_state(run_read_number(r, "python"), &ticks);
        begin = begin < 0 ? ticks : begin;
        seen = state == want && (want != 'R' || ticks > begin + 3) ? seen + 1 : 0;
        if (!run_runs(r))
            return false;
    }
    return true;
}

static const struct way {
    const char *how, *message;
    char state; /* of Python */
} WAYS[] = {{"loop", "rank 1 loops in a.py:4 step()", 'R'},
            {"fifo", "rank 1 is in a.py:7 step() (S", 'S'},
            {"lock", "rank 1 is in a.py:9 step() (S", 'S'},
            {"disk", "rank 1 is in uninterruptible sleep (D", 'D'},
            {"late", "rank 1 is in uninterruptible sleep (D", 'S'}};

/* Python's stacks name the line, of a process that holds the interpreter's lock for ever too. One in uninterruptible sleep leaves
 * none: the parent of a vfork whose child does nothing is in it, and takes no signal but SIGKILL. Who waits for a file server that
 * is gone may be in it only after the first signal. Shells of the other ranks give signs until Python hangs. False: a run's did not for
 * longer than the limit, or a stack came too late. */
static bool python_is_blamed(int64_t ms)
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
        "if os.environ['RANK'] == '1':\n"
        "    with open('new', 'w') as f: print(os.getpid(), file=f)\n"
        "    os.rename('new', 'python')\n"
        "    deep(50)\n"
        "open('here.' + os.environ['RANK'], 'w').close()\n"
        "time.sleep(1000)\n"
        "E\n"
        "mv tmp.$RANK a.py\n"
        "if [ $RANK != 1 ]; then while [ ! -e hangs ]; do echo .; sleep 0.1; done & exec python3 a.py; fi\n"
        "python3 a.py; echo over"; /* a child of the shell, and its only one */
    struct run runs[ARRAY_LEN(WAYS)];
    bool hangs[ARRAY_LEN(WAYS)], all = true;
    char said[ARRAY_LEN(WAYS)][128];

    for (size_t i = 0; i < ARRAY_LEN(WAYS); i++) {
        set_limit(ms, WAYS[i].message, said[i]);
        setenv("HOW", WAYS[i].how, 1);
        run_start(&runs[i], RUN_ARGS("--nproc-per-node=3"), script);
    }
    for (size_t i = 0; i < ARRAY_LEN(WAYS); i++) {
        hangs[i] = run_wait_file(&runs[i], "here.0") && run_wait_file(&runs[i], "here.2") &&
                   wait_state(&runs[i], WAYS[i].state);
        run_touch(&runs[i], "hangs");
    }
    for (size_t i = 0; i < ARRAY_LEN(WAYS); i++) {
        assert_int_equal(run_wait(&runs[i]), 138);
        if (strstr(WAYS[i].message,
                   "a.py")) /* all write their stacks, which the launcher awaits for some seconds */
            hangs[i] = hangs[i] && count_in(&runs[i].err, "Fatal Python error: Aborted") == 3;
        all = all && hangs[i];
        if (hangs[i])
            run_blames(&runs[i], 1, 138, said[i]);
        run_release(&runs[i]);
    }
    return all;
}

static void test_python(void **state)
{
    (void)state;
    patience_until(python_is_blamed, 2000);
}

/* Two nodes: the one with the rank at fault ends with 138, the other with 140, and both name it, whatever restarts are left. The other
 * ranks speak when it is stopped. False: not all of them were heard. */
static bool rank_of_another_node_is_blamed(int64_t ms)
{
    char said[128];
    struct crew c;
    bool heard = true;

    set_limit(ms, "rank 3 is stopped (T)", said);
    setenv("PTJ_TERMINATION_LOG", "report", 1);
    crew_open(&c, 2);
    crew_start_all(
        &c, RUN_ARGS("--nnodes=2", "--nproc-per-node=2", "--max-restarts=3"),
        "cd $SHARED; if [ $RANK = 3 ]; then echo rank 3; echo $$ >tmp; mv tmp three; kill -STOP $$; fi; "
        "until [ -e three ]; do echo .; sleep 0.05; done; " UNTIL_STOPPED(
            "three") "echo rank $RANK; exec sleep 1000");
    crew_expect_node(&c, 1, 138);
    crew_expect_node(&c, 0, 140);
    for (int i = 0; i < 2; i++)
        heard = heard && count(&c.runs[i], "rank ") == 2;
    for (int i = 0; i < 2 && heard; i++) {
        run_blames(&c.runs[i], 3, 138, said);
        assert_int_equal(run_has_file(&c.runs[i], "report"), i == 1);
    }
    crew_release(&c);
    return heard;
}

static void test_two_nodes(void **state)
{
    (void)state;
    patience_until(rank_of_another_node_is_blamed, 1000);
}

/* Node 1 has been quiet all the time when node 0 ends well, and continues for half of the limit. False: a rank was ended that
 * lost its core. */
static bool end_of_a_node_is_a_sign(int64_t ms)
{
    struct crew c;
    char nap[16];

    set_signs(ms * 6 / 7); /* one and a half times the limit */
    snprintf(nap, sizeof(nap), "%d", (int)(ms / 2000));
    setenv("NAP", nap, 1);
    set_limit(ms, "", (char[128]){""});
    crew_open(&c, 2);
    crew_start_all(
        &c, RUN_ARGS("--nnodes=2"),
        "if [ $NODE = 1 ]; then while [ ! -e $SHARED/end ]; do sleep 0.1; done; exec sleep $NAP; fi; i=0; "
        "while [ $i -lt $SIGNS ]; do echo $i; sleep 0.1; i=$((i+1)); done; touch $SHARED/end");
    const int first = crew_wait(&c, 0), other = crew_wait(&c, 1);
    if ((first || other) && (first < 138 || other < 138))
        fail_msg("%d, %d: %s%s", first, other, buf_str(&c.runs[0].err), buf_str(&c.runs[1].err));
    crew_release(&c);
    return !first && !other;
}

static void test_the_end_of_a_node_is_a_sign(void **state)
{
    (void)state;
    patience_until(end_of_a_node_is_a_sign, 4000);
}

int main(int argc, char **argv)
{
#define HANG_TEST(f) cmocka_unit_test_teardown(f, unset_limit)
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
