/* test_nodes_lost.c - launchers that are killed, stopped or cut off: the others end, with a reason, or go on. Losing a
 * node takes its time, so the runs of this file go side by side. */
#include "common/cleanup.h"
#include "crew.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Long enough for a busy machine, and short enough to wait for. */
#define BEATS "keep_alive_interval=0.5,keep_alive_max_attempt=8,last_call_timeout=0.2"
/* Heartbeats that nobody lives to miss: what is noticed is noticed by the connection that ended. */
#define NO_BEATS "keep_alive_interval=3600,keep_alive_max_attempt=9,last_call_timeout=0.2"
#define UP "touch up$TORCHELASTIC_RESTART_COUNT world$WORLD_SIZE; echo $$ >p; mv p pid; "
#define WAIT "while [ ! -e go ]; do sleep 0.01; done"

static void begin(struct crew *c, int n, const char *conf, const char *nnodes, const char *restarts)
{
    crew_open(c, n);
    c->conf = conf;
    crew_start_all(c, RUN_ARGS(nnodes, restarts), UP WAIT);
    crew_wait_file(c, "pid");
}

/* What was stopped is killed, so that the test ends. */
static void put_away(struct crew *c, int i)
{
    kill(c->runs[i].pid, SIGKILL);
    assert_int_equal(crew_wait(c, i), -SIGKILL);
}

static void expect_lost(struct crew *c, int i, const char *why)
{
    assert_int_equal(crew_wait(c, i), 140);
    run_says(&c->runs[i].err, why);
    assert_true(run_gone(run_read_number(&c->runs[i], "pid")));
}

/* Its stderr so far holds the text, in the end. */
static void wait_for_words(const struct run *r, const char *words)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    for (int i = 0; !run_has_said(r, words); i++, nanosleep(&pause, NULL))
        if (i == 30000)
            fail_msg("never said: %s", words);
}

/* Two of three have come, and the second is stopped: it would be waited for as long as the third. */
static void begin_to_form(struct crew *c)
{
    crew_open(c, 3);
    c->conf = BEATS ",join_timeout=3600";
    for (int i = 0; i < 2; i++)
        crew_start(c, i, RUN_ARGS("--nnodes=3", "--max-restarts=0", "--rdzv-id=forms"), "true");
    wait_for_words(&c->runs[0], "2 of 3 nodes have joined");
    kill(c->runs[1].pid, SIGSTOP);
}

static void test_a_node_of_a_fixed_run(void **state)
{
    struct crew killed, stopped, forming;

    (void)state;
    begin_to_form(&forming);
    begin(&killed, 3, NO_BEATS, "--nnodes=3", "--max-restarts=0");
    begin(&stopped, 3, BEATS, "--nnodes=3", "--max-restarts=0");
    put_away(&killed, 1);
    kill(stopped.runs[1].pid, SIGSTOP);
    for (int i = 0; i < 3; i += 2) {
        expect_lost(&killed, i, "node 127.0.0.1 was lost: its launcher's connection ended");
        expect_lost(&stopped, i, "node 127.0.0.1 was lost: nothing was heard of it");
    }
    assert_int_equal(crew_wait(&forming, 0), 140);
    run_says(&forming.runs[0].err, "node 127.0.0.1 was lost: nothing was heard of it");
    put_away(&stopped, 1);
    put_away(&forming, 1);
    crew_release(&killed);
    crew_release(&stopped);
    crew_release(&forming);
}

static void test_the_host(void **state)
{
    struct crew killed, stopped;

    (void)state;
    begin(&killed, 3, NO_BEATS, "--nnodes=1:3", "--max-restarts=9");
    begin(&stopped, 3, BEATS, "--nnodes=1:3", "--max-restarts=9");
    put_away(&killed, 0);
    kill(stopped.runs[0].pid, SIGSTOP);
    for (int i = 1; i < 3; i++) {
        expect_lost(&killed, i, "the node that hosts it was lost");
        expect_lost(&stopped, i, "the node that hosts it was lost");
    }
    put_away(&stopped, 0);
    crew_release(&killed);
    crew_release(&stopped);
}

/* The others go on; one that was only stopped comes back, and so does a new one; none of it uses a restart. */
static void test_an_elastic_run_goes_on(void **state)
{
    struct crew c;

    (void)state;
    begin(&c, 3, BEATS, "--nnodes=2:3", "--max-restarts=0");
    kill(c.runs[1].pid, SIGSTOP);
    assert_true(run_wait_file(&c.runs[0], "world2") && run_wait_file(&c.runs[2], "world2"));
    run_remove(&c.runs[0], "world3");
    kill(c.runs[1].pid, SIGCONT);
    assert_true(run_wait_file(&c.runs[0], "world3"));
    run_remove(&c.runs[0], "world2");
    put_away(&c, 2);
    assert_true(run_wait_file(&c.runs[0], "world2"));
    for (int i = 0; i < 2; i++)
        run_touch(&c.runs[i], "go");
    for (int i = 0; i < 2; i++)
        assert_int_equal(crew_wait(&c, i), 0);
    assert_false(run_has_file(&c.runs[0], "up1"));
    crew_release(&c);
}

/* Those who wait say for whom, on every node. One runs beside the other kinds: 10 s are for all of them. */
static void test_who_waits_says_for_whom(void **state)
{
    struct crew named, counted, alone;

    (void)state;
    crew_open(&named, 4);
    named.is_static = true;
    crew_start(&named, 0, RUN_ARGS("--nnodes=4"), "true");
    crew_start(&named, 2, RUN_ARGS("--nnodes=4", "--node-rank=2"), "true");
    crew_open(&counted, 3);
    crew_start(&counted, 0, RUN_ARGS("--nnodes=2:3"), "true");
    crew_open(&alone, 2);
    crew_start(&alone, 1, RUN_ARGS("--nnodes=2"), "true");
    wait_for_words(
        &named.runs[0],
        "waiting for other nodes for 10 s: 2 of 4 nodes have joined, node ranks missing: 1, 3; gives up");
    wait_for_words(&named.runs[2], "2 of 4 nodes have joined, node ranks missing: 1, 3; gives up");
    wait_for_words(&counted.runs[0], "1 of at least 2 and at most 3 nodes have joined; gives up");
    wait_for_words(&alone.runs[1], "waiting for the node that hosts it for 10 s; gives up");
    kill(counted.runs[0].pid, SIGTERM);
    kill(alone.runs[1].pid, SIGTERM);
    crew_end(&counted, 143);
    crew_end(&alone, 143);
    for (int i = 0; i < 2; i++)
        kill(named.runs[2 * i].pid, SIGTERM);
    for (int i = 0; i < 2; i++)
        (void)crew_wait(&named, 2 * i);
    crew_release(&named);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_of_a_fixed_run),
        cmocka_unit_test(test_the_host),
        cmocka_unit_test(test_an_elastic_run_goes_on),
        cmocka_unit_test(test_who_waits_says_for_whom),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
