/* test_traceback.c - the exception that a rank left stands whole in the launcher's block, and in the block of a launcher
 * that started it. */
#include "common/cleanup.h"
#include "crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As PyTorch's @record writes it. */
#define LEAVES                                                                                               \
    "if [ $RANK = 1 ]; then echo '{\"message\": {\"message\": \"ValueError: \\u00e9\", \"extraInfo\": "      \
    "{\"py_callstack\": \"Traceback (most recent call last):\\n  File 1\\nValueError: \\u00e9\\n\", "        \
    "\"timestamp\": \"1700000000\"}}}' >$TORCHELASTIC_ERROR_FILE; exit 1; fi; sleep 1000"

static const char BLOCK[] = "  traceback : Traceback (most recent call last):\n    File 1\n"
                            "  ValueError: \xc3\xa9\n  \n=====";

static void expect_block(const struct run *r, int count)
{
    const char *p = buf_str(&r->err);

    for (; (p = strstr(p, BLOCK)); p++)
        count--;
    if (count)
        fail_msg("%d more blocks expected in: %s", count, buf_str(&r->err));
    assert_non_null(strstr(buf_str(&r->err), "  time      : 2023-11-1")); /* the file's, not ours */
}

static void test_block(void **state)
{
    static const char *const more[] = {"--tee=0", "--redirects=3", "--tee=3"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        struct run r;
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2", "--log-dir=logs", more[i]), LEAVES, &r), 1);
        expect_block(&r, 1);
        assert_non_null(strstr(buf_str(&r.err), "/attempt_0/1/error.json\n"));
        run_release(&r);
    }
}

/* The inner one hands the file on to the outer one. */
static void test_launcher_under_a_launcher(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1", run_torchrun, "--nproc-per-node=2"), LEAVES, &r),
                     1);
    expect_block(&r, 2);
    run_release(&r);
}

/* Among nodes the launcher reads the failed rank's file while the others are stopped: what one of these leaves then stands
 * in the block too. */
static void test_one_that_fails_while_it_is_stopped(void **state)
{
    static const char script[] =
        "if [ $RANK = 0 ]; then trap 'echo \"{\\\"message\\\": \\\"told at the end\\\"}\" "
        ">$TORCHELASTIC_ERROR_FILE; exit 1' TERM; "
        "touch ready; while :; do sleep 0.01; done; fi; until [ -e ready ]; do sleep 0.01; done; exit 3";
    struct crew c;

    (void)state;
    crew_open(&c, 1);
    c.conf = "last_call_timeout=0.01";
    crew_start_all(&c, RUN_ARGS("--nnodes=1:2", "--nproc-per-node=2", "--log-dir=logs"), script);
    crew_expect_node(&c, 0, 3);
    if (!strstr(buf_str(&c.runs[0].err), "/0/error.json\n  traceback : told at the end\n"))
        fail_msg("%s", buf_str(&c.runs[0].err));
    crew_release(&c);
}

#define OWN_FILE "echo '{\"message\": \"ValueError: no such table\"}' >$TORCHELASTIC_ERROR_FILE; "
#define LOST_FILE                                                                                            \
    "echo '{\"message\": \"RuntimeError: gloo/transport/tcp/pair.cc: Connection closed by peer\"}' "         \
    ">$TORCHELASTIC_ERROR_FILE; "
#define OWN_STDERR                                                                                           \
    "printf '[rank1]: Traceback:\\n[rank1]:   File \"t.py\", line 1, in f\\n[rank1]: ValueError: no such "   \
    "table\\n' >&2; "
#define LOST_STDERR "echo 'RuntimeError: gloo/transport/tcp/pair.cc: Connection closed by peer' >&2; "
#define HELD "touch $RAISED; sleep 1000; "
#define WELL "trap 'exit 0' TERM; touch $RAISED; while :; do sleep 0.01; done; "

/* Rank 1 does `first` and is held in its shutdown; rank 0, its peer, then ends. Who is to blame, on one node and on two? */
static const struct {
    const char *first, *then;
    int rank, code;
    bool nodes; /* on two as well */
} HELD_CASES[] = {
    {OWN_FILE HELD, "kill -ABRT $$", 1, 1, true},
    {OWN_FILE HELD, LOST_FILE "exit 1", 1, 1, true},
    {OWN_FILE HELD, "exit 140", 1, 1, false},
    {OWN_STDERR HELD, "kill -ABRT $$", 1, 1, true},
    {OWN_STDERR HELD, LOST_STDERR "exit 1", 1, 1, true},
    /* Its own end, or rank 1 has not failed. */
    {OWN_FILE HELD, "exit 3", 0, 3, true},
    {OWN_FILE HELD, "kill -SEGV $$", 0, 139, false},
    {HELD, "kill -ABRT $$", 0, 134, true},
    {LOST_FILE HELD, "kill -ABRT $$", 0, 134, false},
    {LOST_STDERR HELD, "kill -ABRT $$", 0, 134, false},
    {OWN_FILE WELL, "kill -ABRT $$", 0, 134, false},
};

static void write_script(size_t i, char script[static 1024])
{
    char path[64];

    snprintf(path, sizeof(path), "/tmp/test-traceback-%d", (int)getpid());
    remove(path);
    setenv("RAISED", path, 1);
    snprintf(script, 1024, "if [ $RANK = 1 ]; then %s fi; until [ -e $RAISED ]; do sleep 0.01; done; %s",
             HELD_CASES[i].first, HELD_CASES[i].then);
}

/* Long where rank 1 is not to be killed before it ends well. */
static const char *timeout_of(size_t i)
{
    return strstr(HELD_CASES[i].first, WELL) ? "--shutdown-timeout=600" : "--shutdown-timeout=0.4";
}

static void expect_root(const struct run *r, size_t i)
{
    const bool told = HELD_CASES[i].rank == 1 && strstr(HELD_CASES[i].first, OWN_FILE);

    run_blames(r, HELD_CASES[i].rank, 0, told ? "ValueError: no such table" : "");
}

static void test_a_rank_held_in_its_shutdown(void **state)
{
    char script[1024];

    (void)state;
    setenv("PTJ_TERMINATION_LOG", "/dev/null", 1); /* stderr comes through the launcher */
    for (size_t i = 0; i < ARRAY_LEN(HELD_CASES); i++) {
        struct run r;
        write_script(i, script);
        const int code = run_once(RUN_ARGS("--nproc-per-node=2", timeout_of(i)), script, &r);
        expect_root(&r, i);
        assert_int_equal(code, HELD_CASES[i].code);
        run_release(&r);
    }
}

/* The other node's launcher asks for the cause. */
static void test_a_rank_held_on_another_node(void **state)
{
    char script[1024];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(HELD_CASES); i++) {
        struct crew c;
        if (!HELD_CASES[i].nodes)
            continue;
        crew_open(&c, 2);
        write_script(i, script);
        crew_start_all(&c, RUN_ARGS("--nnodes=2", timeout_of(i)), script);
        for (int node = 0; node < 2; node++) {
            const int code = crew_wait(&c, node);
            expect_root(&c.runs[node], i);
            assert_int_equal(code, node == HELD_CASES[i].rank ? HELD_CASES[i].code : 140);
        }
        crew_release(&c);
    }
    remove(getenv("RAISED"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_launcher_under_a_launcher),
        cmocka_unit_test(test_one_that_fails_while_it_is_stopped),
        cmocka_unit_test(test_a_rank_held_in_its_shutdown),
        cmocka_unit_test(test_a_rank_held_on_another_node),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
