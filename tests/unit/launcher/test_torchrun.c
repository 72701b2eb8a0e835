/* test_torchrun.c - real processes: how ranks end, and what torchrun makes of it. */
#include "common/cleanup.h"
#include "run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TWO "--nproc-per-node=2"
#define FOUR "--nproc-per-node=4"

static void test_exit_codes_come_through(void **state)
{
    static const int codes[] = {0, 1, 2, 3, 77, 126, 127, 130, 138, 143, 255};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        char script[80];
        snprintf(script, sizeof(script), "[ $RANK = 1 ] && exit %d; [ %d = 0 ] || sleep 1000", codes[i],
                 codes[i]);
        run_expect(RUN_ARGS(TWO), script, codes[i], NULL);
    }
}

static void test_fatal_signals_come_through(void **state)
{
    static const int signals[] = {SIGHUP,  SIGINT,  SIGILL,  SIGABRT, SIGKILL,
                                  SIGSEGV, SIGPIPE, SIGTERM, SIGXCPU};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char script[80];
        struct run r;
        snprintf(script, sizeof(script), "[ $RANK = 1 ] && kill -%d $$; sleep 1000", signals[i]);
        assert_int_equal(run_once(RUN_ARGS(TWO), script, &r), 128 + signals[i]);
        run_blames(&r, 1, -signals[i], "rank      : 1 (local_rank: 1)");
        run_release(&r);
    }
}

/* 140 says "because of another": the real cause comes from another rank, as soon as the launcher has noticed the first. It waits for
 * that for a second, in which a rank of a busy machine may not run. */
static void test_root_cause_is_awaited(void **state)
{
    int code = 140;

    (void)state;
    for (int tries = 0; code == 140 && tries < 5; tries++)
        code = run_once(RUN_ARGS(FOUR),
                        "[ $RANK = 0 ] && { echo $$ >p; mv p pid; exit 140; }; "
                        "[ $RANK = 2 ] && { until [ -e pid ]; do sleep 0.01; done; read first <pid; "
                        "while kill -0 $first; do :; done; exit 9; }; sleep 1000",
                        NULL);
    assert_int_equal(code, 9);
    run_expect(RUN_ARGS(FOUR), "[ $RANK = 0 ] && exit 140; sleep 1000", 140, NULL);
    /* One that we stopped is never to blame, whatever it makes of the signal. */
    run_expect(RUN_ARGS(FOUR), "trap 'exit 55' TERM; [ $RANK = 3 ] && exit 7; sleep 1000 & wait", 7, NULL);
}

static void test_master_port_is_held_for_rank_0(void **state)
{
    (void)state;
    run_expect(RUN_ARGS(TWO, "--standalone", "--max-restarts=1"),
               "[ $RANK = 1 ] || { " RUN_PORT_IS_HELD "}; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 9", 0,
               NULL);
}

static void test_sigterm_and_sigint_let_ranks_save(void **state)
{
    static const struct {
        int signal, code;
        const char *trap;
    } cases[] = {{SIGTERM, 143, "TERM"}, {SIGINT, 130, "INT"}, {SIGHUP, 129, "HUP"}, {SIGQUIT, 131, "QUIT"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char script[200];
        struct run r;
        snprintf(script, sizeof(script),
                 "trap 'sleep 0.2; touch saved$RANK; exit 3' %s; sleep 1000 & touch up$RANK; wait",
                 cases[i].trap);
        run_start(&r, RUN_ARGS(TWO, "--max-restarts=5"), script);
        assert_true(run_wait_file(&r, "up0") && run_wait_file(&r, "up1"));
        kill(r.pid, cases[i].signal);
        assert_int_equal(run_wait(&r), cases[i].code);
        assert_true(run_has_file(&r, "saved0") && run_has_file(&r, "saved1"));
        run_release(&r);
    }
}

/* nohup, and a shell's background job: neither the launcher nor its ranks hear the signal. Named, it is heard. */
static void test_signals_ignored_at_exec(void **state)
{
    static const struct {
        int signal;
        const char *named;
        int code;
    } cases[] = {{SIGHUP, NULL, 0},
                 {SIGINT, NULL, 0},
                 {SIGQUIT, NULL, 0},
                 {SIGHUP, "--signals-to-handle=SIGTERM,SIGHUP", 129},
                 {SIGINT, "--signals-to-handle=SIGINT", 130},
                 {SIGTERM, NULL, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run r;
        run_ignored = cases[i].signal;
        run_start(&r, RUN_ARGS("--nproc-per-node=1", cases[i].named ? cases[i].named : "--no-python"),
                  "grep SigIgn: /proc/self/status; touch up; until [ -e go ]; do sleep 0.01; done");
        run_ignored = 0;
        assert_true(run_wait_file(&r, "up"));
        kill(r.pid, cases[i].signal);
        if (!cases[i].code) {
            usleep(50000); /* a launcher that hears it needs less */
            run_touch(&r, "go");
        }
        assert_int_equal(run_wait(&r), cases[i].code);
        /* SIGTERM is how the launcher itself stops ranks. */
        const bool ignores = !cases[i].code && cases[i].signal != SIGTERM;
        assert_int_equal(strtoull(strstr(buf_str(&r.out), "SigIgn:") + 7, NULL, 16) & 0x7fffffff,
                         ignores ? 1ULL << (cases[i].signal - 1) : 0);
        run_release(&r);
    }
}

/* Started without stdin, stdout, stderr or all of them: what the launcher opens is no stream of anybody's. */
static void test_closed_standard_descriptors(void **state)
{
    static const char *const closed[] = {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
        char script[400], path[80], got[400] = "";
        struct run r;
        snprintf(
            script, sizeof(script),
            "exec %s --nproc-per-node=1 sh -c 'ls -l /proc/$PPID/fd >fds; ls -l /proc/$$/fd >own; exit 3' %s",
            run_torchrun, closed[i]);
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1"), script, &r), 3);
        for (int own = 0; own < 2; own++) {
            snprintf(path, sizeof(path), "%s/%s", r.dir, own ? "own" : "fds");
            cleanup_fclose FILE *f = fopen(path, "re");
            assert_non_null(f);
            while (fgets(got, sizeof(got), f)) {
                char *fd = strstr(got, " -> ");
                if (fd && fd[-2] == ' ' && fd[-1] <= '2' &&
                    (strstr(fd, "memfd") || strstr(fd, "signalfd") || strstr(fd, "event")))
                    fail_msg("%s: %s", closed[i], got);
            }
        }
        run_release(&r);
    }
}

/* A shell dies of the signal at once; the trainer it started must still get its time. */
static void test_children_of_a_shell_get_their_time(void **state)
{
    struct run r;

    (void)state;
    run_start(&r, RUN_ARGS("--nproc-per-node=1"),
              "sh -c 'trap \"sleep 0.3; touch saved; exit 0\" TERM; sleep 1000 & touch up; wait'; true");
    assert_true(run_wait_file(&r, "up"));
    kill(r.pid, SIGTERM);
    assert_int_equal(run_wait(&r), 143);
    assert_true(run_has_file(&r, "saved"));
    run_release(&r);
}

static void test_stubborn_ranks_are_killed(void **state)
{
    struct run r;

    (void)state;
    run_start(&r, RUN_ARGS(TWO, "--shutdown-timeout=0.3"),
              "trap '' TERM; echo $$ >p$RANK; mv p$RANK pid$RANK; while :; do sleep 1; done");
    assert_true(run_wait_file(&r, "pid0") && run_wait_file(&r, "pid1"));
    kill(r.pid, SIGTERM);
    assert_int_equal(run_wait(&r), 143);
    assert_true(run_gone(run_read_number(&r, "pid0")) && run_gone(run_read_number(&r, "pid1")));
    run_release(&r);
    /* The same when another's failure ends them, and when they are stopped. */
    run_expect(RUN_ARGS(TWO, "--shutdown-timeout=0.3"),
               "[ $RANK = 0 ] && sleep 0.1 && exit 6; trap '' TERM; while :; do sleep 1; done", 6, NULL);
    run_expect(RUN_ARGS(TWO, "--shutdown-timeout=1000"),
               "[ $RANK = 0 ] && sleep 0.2 && exit 6; kill -STOP $$; sleep 1000", 6, NULL);
}

static void test_second_sigint_kills_at_once(void **state)
{
    struct run r;

    (void)state;
    run_start(&r, RUN_ARGS(TWO, "--shutdown-timeout=1000"),
              "trap 'touch got$RANK' INT; touch up$RANK; while :; do sleep 0.01; done");
    assert_true(run_wait_file(&r, "up0") && run_wait_file(&r, "up1"));
    kill(r.pid, SIGINT);
    assert_true(run_wait_file(&r, "got0") && run_wait_file(&r, "got1"));
    kill(r.pid, SIGINT);
    assert_int_equal(run_wait(&r), 130);
    run_release(&r);
}

/* Memory that outlives the ranks, which inherit no descriptor of it. Each launcher has its own. */
static void test_ranks_keep_data_over_restarts(void **state)
{
    static const char script[] = "case $(ls -l /proc/$$/fd) in *torchkeeper*) exit 3; esac; "
                                 "f=/proc/${TORCHKEEPER_KEPT_DATA%/*}/fd/${TORCHKEEPER_KEPT_DATA#*/}; "
                                 "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && { [ -s $f ] && exit 4; "
                                 "echo word >>$f; exit 5; }; [ \"$(cat $f)\" = word ]";

    (void)state;
    for (int i = 0; i < 2; i++)
        run_expect(RUN_ARGS("--nproc-per-node=1", "--max-restarts=1"), script, 0, NULL);
}

static void test_restarts(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(
        run_once(RUN_ARGS(TWO, "--max-restarts=3"),
                 "touch try$TORCHELASTIC_RESTART_COUNT.$RANK; [ $RANK = 1 ] && exit 5; sleep 1000", &r),
        5);
    assert_true(run_has_file(&r, "try0.1") && run_has_file(&r, "try1.1") && run_has_file(&r, "try3.1"));
    assert_false(run_has_file(&r, "try4.1"));
    run_says(&r.err, "restart 3 of 3");
    run_release(&r);
    run_expect(RUN_ARGS(TWO, "--max-restarts=3"),
               "[ $TORCHELASTIC_RESTART_COUNT = 2 ] || { [ $RANK = 0 ] && kill -9 $$; sleep 1000; }", 0,
               NULL);
}

/* Bad flags are as bad the next time. Under a rank that only noticed (which waits for the other for a second, as above), and after
 * another failure. */
static void test_a_wrong_usage_is_final(void **state)
{
    struct run r;

    (void)state;
    for (int tries = 1;; tries++) {
        assert_int_equal(run_once(RUN_ARGS(TWO, "--max-restarts=3"),
                                  "touch try$TORCHELASTIC_RESTART_COUNT; [ $RANK = 0 ] && exit 140; exit 2",
                                  &r),
                         2);
        assert_true(run_has_file(&r, "try0"));
        if (!run_has_file(&r, "try1"))
            break;
        assert_true(tries < 5);
        run_release(&r);
    }
    run_says(&r.err, "torchrun: exit code 2 means wrong usage");
    run_says(&r.err, ": no restart here (restartPolicy: ExitCode ");
    run_release(&r);
    assert_int_equal(
        run_once(RUN_ARGS(TWO, "--max-restarts=3"),
                 "touch try$TORCHELASTIC_RESTART_COUNT; exit $((1 + TORCHELASTIC_RESTART_COUNT))", &r),
        2);
    assert_true(run_has_file(&r, "try1") && !run_has_file(&r, "try2"));
    run_release(&r);
    assert_int_equal(run_once(RUN_ARGS(TWO), "exit 2", &r), 2);
    assert_null(strstr(buf_str(&r.err), "wrong usage")); /* there was no restart to be had */
    run_release(&r);
}

static int count_children(pid_t pid)
{
    char path[64];
    int n = 0, child;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    cleanup_fclose FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%d", &child) == 1)
        n++;
    return n;
}

static void test_zombies_of_orphans_do_not_pile_up(void **state)
{
    struct run r;
    int n = 0;

    (void)state;
    run_start(&r, RUN_ARGS("--nproc-per-node=1"),
              "for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'true & exit 0'; done; sleep 0.1; touch up; while [ ! "
              "-e go ]; do sleep 0.01; done");
    assert_true(run_wait_file(&r, "up"));
    for (int i = 0; i < 300000 && (n = count_children(r.pid)) > 2; i++)
        usleep(2000);
    assert_int_equal(n, 2); /* the rank, and the launcher's guard */
    run_touch(&r, "go");
    assert_int_equal(run_wait(&r), 0);
    run_release(&r);
}

/* The rank, and what it has started and left behind, in its session and in one of its own, however the launcher ends. */
static void test_what_ranks_started_ends_with_the_launcher(void **state)
{
    static const struct {
        const char *script;
        int signal, code;
    } cases[] = {{"eval \"$START\"; sleep 1000", SIGKILL, -SIGKILL},
                 {"eval \"$START\"; sleep 1000", SIGUSR1, -SIGUSR1},
                 {"eval \"$START\"", 0, 0},
                 {"eval \"$START\"; exit 4", 0, 4}};
    static const char *const pids[] = {"rank", "a", "own", "c"};

    (void)state;
    setenv("START",
           "sleep 1000 & echo $! >a; setsid sh -c 'echo $$ >b; mv b own; exec sleep 1000' & "
           "sh -c 'setsid sleep 1000 & echo $! >c'; echo $$ >rank; until [ -s own ]; do sleep 0.01; done; "
           "touch up",
           1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run r;
        run_start(&r, RUN_ARGS("--nproc-per-node=1"), cases[i].script);
        if (cases[i].signal) {
            assert_true(run_wait_file(&r, "up"));
            kill(r.pid, cases[i].signal);
        }
        assert_int_equal(run_wait(&r), cases[i].code);
        for (size_t k = 0; k < ARRAY_LEN(pids); k++)
            if (!run_gone(run_read_number(&r, pids[k])))
                fail_msg("%s is left", pids[k]);
        run_release(&r);
    }
}

static void test_what_cannot_be_started(void **state)
{
    (void)state;
    run_expect(RUN_ARGS(TWO, "./no-such-program"), NULL, 1,
               "torchrun: cannot run ./no-such-program: No such file");
    run_expect(RUN_ARGS(TWO, "/etc/passwd"), NULL, 1, NULL);
    run_expect(RUN_ARGS("--nnodes=1:2", "true"), NULL, 2, "torchrun: --nnodes=1:2");
    run_expect(RUN_ARGS("--log-dir=/proc/none", "true"), NULL, 1, "--log-dir=/proc/none");
}

/* The set of signals behind a name in what a rank prints of /proc/self/status. */
static unsigned long long signal_set(const struct run *r, const char *name)
{
    const char *at = strstr(buf_str(&r->out), name);

    assert_non_null(at);
    return strtoull(at + strlen(name), NULL, 16);
}

/* Signals and children as they were: a launcher must not leak its own mask, ignored signals or descriptors. */
static void test_ranks_start_clean(void **state)
{
    struct run r;

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(
        run_once(RUN_ARGS(TWO, "-t3"),
                 "grep -E '^Sig(Blk|Ign|Cgt):' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '; echo", &r),
        0);
    signal(SIGPIPE, SIG_DFL);
    assert_true(signal_set(&r, "SigBlk:") == 0);
    /* 32 and 33 are the C library's own: it lets nobody set them, so they stay as whoever started us had them. */
    assert_true((signal_set(&r, "SigIgn:") & ~(3ULL << 31)) == 0);
    run_says(&r.out, ":0 1 2 3 \n");
    run_release(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes_come_through),
        cmocka_unit_test(test_fatal_signals_come_through),
        cmocka_unit_test(test_root_cause_is_awaited),
        cmocka_unit_test(test_master_port_is_held_for_rank_0),
        cmocka_unit_test(test_sigterm_and_sigint_let_ranks_save),
        cmocka_unit_test(test_signals_ignored_at_exec),
        cmocka_unit_test(test_closed_standard_descriptors),
        cmocka_unit_test(test_children_of_a_shell_get_their_time),
        cmocka_unit_test(test_stubborn_ranks_are_killed),
        cmocka_unit_test(test_second_sigint_kills_at_once),
        cmocka_unit_test(test_ranks_keep_data_over_restarts),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_a_wrong_usage_is_final),
        cmocka_unit_test(test_zombies_of_orphans_do_not_pile_up),
        cmocka_unit_test(test_what_ranks_started_ends_with_the_launcher),
        cmocka_unit_test(test_what_cannot_be_started),
        cmocka_unit_test(test_ranks_start_clean),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
