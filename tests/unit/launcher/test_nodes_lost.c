/* test_nodes_lost.c - launchers that are killed, stopped or cut off: the others end, with a reason, or continue. Losing a
 * node takes seconds, so the runs of this file run at the same time. */
#include "common/cleanup.h"
#include "crew.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Long enough for a busy machine, and short enough to wait for. */
#define BEATS "keep_alive_interval=0.5,keep_alive_max_attempt=20,last_call_timeout=0.2"
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
    crew_expect_node(c, i, -SIGKILL);
}

static void expect_lost(struct crew *c, int i, const char *why)
{
    crew_expect_node(c, i, 140);
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

/* The host's node, or another one of a fixed run: noticed by its connection, which ended. */
static void test_a_launcher_that_is_killed(void **state)
{
    static const char *const says[] = {"the node that hosts it was lost",
                                       "node 127.0.0.1 was lost: its launcher's connection ended"};
    struct crew c[2];

    (void)state;
    begin(&c[0], 3, NO_BEATS, "--nnodes=1:3", "--max-restarts=9");
    begin(&c[1], 3, NO_BEATS, "--nnodes=3", "--max-restarts=0");
    for (int victim = 0; victim < 2; victim++) {
        put_away(&c[victim], victim);
        for (int i = 0; i < 3; i++)
            if (i != victim)
                expect_lost(&c[victim], i, says[victim]);
        crew_release(&c[victim]);
    }
}

/* The others continue; one that was only stopped comes back, and so does a new one; none of it uses a restart. */
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
        crew_expect_node(&c, i, 0);
    assert_false(run_has_file(&c.runs[0], "up1"));
    crew_release(&c);
}

/* Every node that waits reports for whom. */
static void test_who_waits_says_for_whom(void **state)
{
    static const char want[] = " s: 2 of 4 nodes have joined, node ranks missing: 1, 3; gives up";
    struct crew c;

    (void)state;
    crew_open(&c, 4);
    c.is_static = true;
    crew_start(&c, 0, RUN_ARGS("--nnodes=4"), "true");
    crew_start(&c, 2, RUN_ARGS("--nnodes=4", "--node-rank=2"), "true");
    for (int i = 0; i < 4; i += 2)
        wait_for_words(&c.runs[i], want);
    for (int i = 0; i < 4; i += 2)
        kill(c.runs[i].pid, SIGTERM);
    for (int i = 0; i < 4; i += 2)
        (void)crew_wait(&c, i);
    crew_release(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_launcher_that_is_killed),
        cmocka_unit_test(test_an_elastic_run_goes_on),
        cmocka_unit_test(test_who_waits_says_for_whom),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
