/* test_quorum.c - who is in a round and how a run ends: nodes and clock are played by hand. */
#include "rendezvous/quorum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct quorum_config fixed_2 = {.min = 2,
                                             .max = 2,
                                             .restarts = 2,
                                             .join_ms = 600000,
                                             .last_call_ms = 30000,
                                             .keep_alive_ms = 5000,
                                             .keep_alive_attempts = 3};

static struct quorum_config elastic(int min, int max)
{
    struct quorum_config c = fixed_2;

    c.min = min;
    c.max = max;
    return c;
}

/* A node's word, which it says when `tie` is its newest connection; each is a new heartbeat. */
static void hear_tied(struct quorum *q, int64_t ticket, int64_t tie, enum node_phase phase, int64_t now)
{
    static int64_t beat;
    struct meeting_node n = {.phase = phase,
                             .round = q->state.round,
                             .beat = ++beat,
                             .tie = tie,
                             .nproc = ticket + 1,
                             .wanted = -1,
                             .chairs = ticket == 2,
                             .port = 1000 + ticket,
                             .signal = 15,
                             .cause = {.rank = ticket, .pid = 77, .status = 7 << 8, .host = "h"}};

    snprintf(n.addr, sizeof(n.addr), "10.0.0.%d", (int)ticket);
    if (phase == NODE_JOINING && q->state.stage == STAGE_RUNNING)
        n.round++;
    quorum_hear(q, ticket, &n, now);
}

static void hear(struct quorum *q, int64_t ticket, enum node_phase phase, int64_t now)
{
    hear_tied(q, ticket, 1, phase, now);
}

static void fails(struct quorum *q, int64_t ticket, int code, bool unsure, int64_t now)
{
    struct meeting_node n = {.phase = NODE_FAILED, .round = q->state.round, .beat = now + code, .nproc = 1};

    n.cause = (struct meeting_cause){
        .rank = ticket, .pid = 5, .status = code << 8, .unsure = unsure, .wall_ms = now, .host = "h"};
    quorum_hear(q, ticket, &n, now);
}

static void all(struct quorum *q, int n, enum node_phase phase, int64_t now)
{
    for (int64_t t = 1; t <= n; t++)
        hear(q, t, phase, now);
}

static void expect_members(const struct quorum *q, int n, const int64_t *tickets)
{
    assert_int_equal(q->state.stage, STAGE_RUNNING);
    assert_int_equal(q->state.n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(q->state.members[i].ticket, tickets[i]);
        assert_int_equal(q->state.members[i].nproc, tickets[i] + 1);
    }
}

#define MEMBERS(q, ...)                                                                                      \
    expect_members((q), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void begin(struct quorum *q, const struct quorum_config *c, int n)
{
    quorum_init(q, c, 0);
    all(q, n, NODE_JOINING, 1);
    if (!quorum_step(q, 1)) {
        all(q, n, NODE_JOINING, 10000);
        quorum_step(q, 10000);
        all(q, n, NODE_JOINING, 20000);
        quorum_step(q, 20000);
        all(q, n, NODE_JOINING, 1 + c->last_call_ms);
        assert_true(quorum_step(q, 1 + c->last_call_ms));
    }
    assert_int_equal(q->state.stage, STAGE_RUNNING);
    all(q, n, NODE_RUNNING, 1 + c->last_call_ms);
    quorum_step(q, 1 + c->last_call_ms);
}

static void test_a_run_that_goes_well(void **state)
{
    struct quorum q;

    (void)state;
    quorum_init(&q, &fixed_2, 0);
    assert_false(quorum_step(&q, 0));
    hear(&q, 1, NODE_JOINING, 90000);
    assert_false(quorum_step(&q, 90000));
    hear(&q, 2, NODE_JOINING, 90001);
    assert_true(quorum_step(&q, 90001));
    /* The host first; the address and port are its. */
    MEMBERS(&q, 2, 1);
    assert_string_equal(q.state.master_addr, "10.0.0.2");
    assert_int_equal(q.state.master_port, 1002);
    hear(&q, 1, NODE_DONE, 90002);
    assert_false(quorum_step(&q, 90002));
    hear(&q, 2, NODE_DONE, 90003);
    assert_true(quorum_step(&q, 90003));
    assert_int_equal(q.state.end, END_SUCCESS);
    assert_false(quorum_over(&q));
    q.seats[0].node.heard_end = 1;
    assert_false(quorum_over(&q));
    hear(&q, q.seats[1].ticket, NODE_LEAVING, 90004); /* it hears no more */
    assert_true(quorum_over(&q));
    assert_false(quorum_step(&q, 90005));
    quorum_release(&q);
}

static void test_last_call(void **state)
{
    const struct quorum_config c = elastic(2, 4);
    struct quorum q;

    (void)state;
    quorum_init(&q, &c, 0);
    all(&q, 2, NODE_JOINING, 100);
    assert_false(quorum_step(&q, 100));
    assert_int_equal(q.last_call_ms, 30100);
    assert_true(quorum_next_ms(&q, 30000) == 30100);
    for (int64_t now = 4000; now < 30000; now += 4000) {
        all(&q, now < 20000 ? 2 : 3, NODE_JOINING, now);
        assert_false(quorum_step(&q, now));
    }
    assert_true(quorum_step(&q, 30100));
    MEMBERS(&q, 2, 1, 3);
    assert_true(quorum_next_ms(&q, 30100) == 35100); /* heartbeats: the call is over */
    quorum_release(&q);
    /* Full: nothing is waited for. One that has no place waits. */
    quorum_init(&q, &c, 0);
    all(&q, 5, NODE_JOINING, 100);
    assert_true(quorum_step(&q, 100));
    MEMBERS(&q, 2, 1, 3, 4);
    hear(&q, 5, NODE_JOINING, 101);
    assert_false(quorum_step(&q, 101));
    quorum_release(&q);
}

static void test_too_few_in_time(void **state)
{
    struct quorum q;

    (void)state;
    quorum_init(&q, &fixed_2, 0);
    for (int64_t now = 0; now < 600000; now += 5000) {
        hear(&q, 1, NODE_JOINING, now);
        assert_false(quorum_step(&q, now));
    }
    assert_true(quorum_step(&q, 600000));
    assert_int_equal(q.state.end, END_TIMEOUT);
    assert_non_null(strstr(q.state.why, "1 of at least 2 nodes came within 600 s"));
    quorum_release(&q);
}

static void test_failures_use_restarts_everywhere(void **state)
{
    struct quorum q;

    (void)state;
    begin(&q, &fixed_2, 2);
    for (int i = 1; i <= 2; i++) {
        fails(&q, i, 7, false, 40000);
        assert_true(quorum_step(&q, 40000));
        assert_int_equal(q.state.stage, STAGE_FORMING);
        assert_int_equal(q.state.round, i);
        assert_int_equal(q.state.restarts, i);
        assert_non_null(strstr(q.state.why, "exit code 7"));
        all(&q, 2, NODE_JOINING, 40000);
        assert_true(quorum_step(&q, 40000));
        MEMBERS(&q, 2, 1);
    }
    fails(&q, 1, 3, false, 40001);
    assert_true(quorum_step(&q, 40001));
    assert_int_equal(q.state.end, END_FAILED);
    assert_int_equal(q.state.blame, 1);
    assert_int_equal(q.state.cause.status, 3 << 8);
    quorum_release(&q);
}

static void test_root_cause_is_awaited(void **state)
{
    struct quorum_config c = fixed_2;
    struct quorum q;

    (void)state;
    c.restarts = 0;
    begin(&q, &c, 2);
    fails(&q, 1, 140, true, 40000);
    assert_false(quorum_step(&q, 40000));
    assert_true(quorum_next_ms(&q, 40000) == 40000 + QUORUM_ROOT_CAUSE_MS);
    fails(&q, 2, 9, false, 40500);
    assert_true(quorum_step(&q, 40500));
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
    begin(&q, &c, 2);
    fails(&q, 2, 140, true, 40000);
    assert_false(quorum_step(&q, 40000));
    assert_true(quorum_step(&q, 41000));
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
    /* Of two sure ones the first. */
    begin(&q, &c, 2);
    fails(&q, 2, 4, false, 40000);
    fails(&q, 1, 5, false, 40000);
    assert_true(quorum_step(&q, 40000));
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
}

static void test_a_node_comes(void **state)
{
    const struct quorum_config c = elastic(1, 3);
    struct quorum q;

    (void)state;
    begin(&q, &c, 2);
    hear(&q, 3, NODE_JOINING, 31000);
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_int_equal(q.state.restarts, 0);
    hear(&q, 3, NODE_JOINING, 31001);
    assert_false(quorum_step(&q, 31001));
    all(&q, 2, NODE_JOINING, 31002);
    assert_true(quorum_step(&q, 31002));
    MEMBERS(&q, 2, 1, 3);
    quorum_release(&q);
    /* Not when the run is about to end. */
    begin(&q, &c, 2);
    hear(&q, 1, NODE_DONE, 31000);
    hear(&q, 3, NODE_JOINING, 31000);
    assert_false(quorum_step(&q, 31000));
    quorum_release(&q);
}

static void test_a_node_is_lost(void **state)
{
    struct quorum_config c = fixed_2;
    struct quorum q;

    (void)state;
    begin(&q, &c, 2);
    const int64_t at = 30001;
    for (int64_t now = at; now < at + 15000; now += 1000) {
        hear(&q, 2, NODE_RUNNING, now);
        assert_false(quorum_step(&q, now));
    }
    hear(&q, 2, NODE_RUNNING, at + 15000);
    assert_true(quorum_step(&q, at + 15000));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_int_equal(q.state.restarts, 0);
    assert_non_null(strstr(q.state.why, "node 10.0.0.1 was lost"));
    hear(&q, 2, NODE_JOINING, at + 15001);
    assert_false(quorum_step(&q, at + 15001));
    /* Its old word is no sign of life, a new one is: stopped, and continued. */
    struct meeting_node old = q.seats[0].node;
    assert_int_equal(q.seats[0].ticket, 1);
    quorum_hear(&q, 1, &old, at + 15002);
    assert_true(q.seats[0].gone);
    hear(&q, 1, NODE_JOINING, at + 15003);
    assert_true(quorum_step(&q, at + 15003));
    MEMBERS(&q, 2, 1);
    quorum_release(&q);
    /* A size that is fixed, and no restarts: nothing to wait for. */
    c.restarts = 0;
    begin(&q, &c, 2);
    for (int64_t now = at; now <= at + 14000; now += 1000) {
        hear(&q, 2, NODE_RUNNING, now);
        quorum_step(&q, now);
    }
    assert_true(quorum_step(&q, at + 15000));
    assert_int_equal(q.state.end, END_LOST);
    assert_int_equal(q.state.blame, 1);
    quorum_release(&q);
}

static void test_a_connection_ends(void **state)
{
    const int64_t at = 30001;
    struct quorum q;

    (void)state;
    begin(&q, &fixed_2, 2);
    quorum_cut(&q, 7, 1, at); /* nobody that is known */
    quorum_cut(&q, 1, 1, at);
    assert_false(quorum_step(&q, at));
    assert_int_equal(quorum_next_ms(&q, at), at + QUORUM_CUT_MS);
    /* A word that does not speak of a newer connection changes nothing, one that does everything. */
    hear_tied(&q, 1, 1, NODE_RUNNING, at + 100);
    hear_tied(&q, 1, 2, NODE_RUNNING, at + QUORUM_CUT_MS - 1);
    assert_false(quorum_step(&q, at + QUORUM_CUT_MS));
    /* What is known is no news; an older connection neither. */
    quorum_cut(&q, 1, 1, at + 600);
    assert_false(quorum_step(&q, at + 600 + QUORUM_CUT_MS));
    quorum_cut(&q, 1, 2, at + 2000);
    assert_false(quorum_step(&q, at + 2000 + QUORUM_CUT_MS - 1));
    assert_true(quorum_step(&q, at + 2000 + QUORUM_CUT_MS));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_string_equal(q.state.why,
                        "node 10.0.0.1 was lost: its launcher's connection ended: all ranks start again");
    /* It comes back after all. */
    hear(&q, 2, NODE_JOINING, at + 2600);
    assert_false(quorum_step(&q, at + 2600));
    hear_tied(&q, 1, 3, NODE_JOINING, at + 2700);
    assert_true(quorum_step(&q, at + 2700));
    MEMBERS(&q, 2, 1);
    quorum_release(&q);
}

/* A node that is lost while a round forms may come again, as one that is lost while it runs: the rest waits for the last
 * call. One that was told to go will not. */
static void test_a_loss_while_forming(void **state)
{
    const int64_t at = 30001;
    const struct quorum_config c = elastic(1, 3);
    struct quorum q;

    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        begin(&q, &c, 3);
        fails(&q, 3, 7, false, at);
        assert_true(quorum_step(&q, at));
        assert_int_equal(q.state.stage, STAGE_FORMING);
        hear(&q, 2, NODE_JOINING, at + 1);
        hear(&q, 3, NODE_JOINING, at + 1);
        if (leaves)
            hear(&q, 1, NODE_LEAVING, at + 1);
        quorum_cut(&q, 1, 1, at + 1);
        const bool at_once = quorum_step(&q, at + 1) || quorum_step(&q, at + 1 + QUORUM_CUT_MS);
        assert_int_equal(at_once, leaves);
        if (!leaves)
            assert_true(quorum_step(&q, at + 1 + 30000));
        MEMBERS(&q, 2, 3);
        quorum_release(&q);
    }
}

/* Ranks whose peers' node is gone fail too, in their own ways: that uses no restart and is not the cause. */
static void test_failures_of_a_loss(void **state)
{
    const int64_t at = 30001;
    struct quorum_config c = elastic(1, 2);
    struct quorum q;

    (void)state;
    c.restarts = 0;
    begin(&q, &c, 2);
    quorum_cut(&q, 1, 1, at);
    fails(&q, 2, 1, false, at);
    assert_false(quorum_step(&q, at));
    assert_true(quorum_step(&q, at + QUORUM_CUT_MS));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_non_null(strstr(q.state.why, "node 10.0.0.1 was lost"));
    quorum_release(&q);
    /* It was not gone: then the failure is what it seemed. */
    begin(&q, &c, 2);
    quorum_cut(&q, 1, 1, at);
    fails(&q, 2, 1, false, at + 1);
    assert_false(quorum_step(&q, at + 1));
    hear_tied(&q, 1, 2, NODE_RUNNING, at + 2);
    assert_true(quorum_step(&q, at + 2));
    assert_int_equal(q.state.end, END_FAILED);
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
    /* First the failure, then the loss. */
    begin(&q, &c, 2);
    fails(&q, 2, 1, false, at);
    quorum_cut(&q, 1, 1, at + 1);
    assert_true(quorum_step(&q, at + 1));
    assert_int_equal(q.state.end, END_FAILED);
    quorum_release(&q);
}

/* What a node said before it was cut off counts: it has done its part, or was told to go. */
static void test_last_words(void **state)
{
    const int64_t at = 30001;
    const struct quorum_config c = elastic(1, 2);
    struct quorum q;

    (void)state;
    begin(&q, &c, 2);
    hear(&q, 1, NODE_DONE, at);
    quorum_cut(&q, 1, 1, at);
    assert_false(quorum_step(&q, at + QUORUM_CUT_MS));
    hear(&q, 2, NODE_DONE, at + 600);
    assert_true(quorum_step(&q, at + 600));
    assert_int_equal(q.state.end, END_SUCCESS);
    quorum_release(&q);
    begin(&q, &c, 2);
    hear(&q, 1, NODE_LEAVING, at);
    quorum_cut(&q, 1, 1, at);
    assert_true(quorum_step(&q, at));
    assert_non_null(strstr(q.state.why, "stopped by signal 15"));
    hear(&q, 2, NODE_JOINING, at + 1);
    assert_true(quorum_step(&q, at + QUORUM_CUT_MS) || quorum_step(&q, at + 30000 + QUORUM_CUT_MS));
    MEMBERS(&q, 2);
    quorum_release(&q);
}

/* The chair itself did nothing for a while: nobody else is to blame for that. */
static void test_a_stopped_chair_loses_nobody(void **state)
{
    struct quorum q;

    (void)state;
    begin(&q, &fixed_2, 2);
    assert_false(quorum_step(&q, 100000));
    assert_false(quorum_step(&q, 104000));
    all(&q, 2, NODE_RUNNING, 104001);
    assert_false(quorum_step(&q, 104001));
    quorum_release(&q);
}

static void test_a_node_is_told_to_go(void **state)
{
    struct quorum_config c = elastic(2, 3);
    struct quorum q;

    (void)state;
    begin(&q, &fixed_2, 2);
    hear(&q, 1, NODE_LEAVING, 31000);
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.end, END_SIGNAL);
    assert_int_equal(q.state.blame, 1);
    assert_non_null(strstr(q.state.why, "signal 15"));
    quorum_release(&q);
    begin(&q, &c, 3);
    hear(&q, 1, NODE_LEAVING, 31000);
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    hear(&q, 1, NODE_LEAVING, 31000);
    hear(&q, 2, NODE_JOINING, 31000);
    hear(&q, 3, NODE_JOINING, 31000);
    assert_true(quorum_step(&q, 31000));
    MEMBERS(&q, 2, 3);
    hear(&q, 3, NODE_LEAVING, 31000); /* below the fewest */
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.end, END_SIGNAL);
    quorum_release(&q);
    begin(&q, &c, 3);
    hear(&q, 2, NODE_LEAVING, 31000); /* the host takes the store with it */
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.end, END_SIGNAL);
    quorum_release(&q);
}

static void numbered(struct quorum *q, int64_t ticket, int64_t rank)
{
    struct meeting_node n = {.phase = NODE_JOINING,
                             .round = q->state.round,
                             .beat = 100 + ticket,
                             .nproc = ticket + 1,
                             .wanted = rank,
                             .chairs = rank == 0};
    quorum_hear(q, ticket, &n, 10);
}

static void test_fixed_ranks(void **state)
{
    struct quorum_config c = elastic(3, 3);
    struct quorum q;

    (void)state;
    c.fixed_ranks = true;
    c.master_addr = "pod-0";
    c.master_port = 29500;
    quorum_init(&q, &c, 0);
    numbered(&q, 1, 2);
    numbered(&q, 2, 1);
    numbered(&q, 3, 1); /* started again: takes the place of its predecessor */
    numbered(&q, 4, -1);
    numbered(&q, 5, 3);
    assert_false(quorum_step(&q, 10));
    numbered(&q, 6, 0);
    assert_true(quorum_step(&q, 10));
    MEMBERS(&q, 6, 3, 1);
    assert_string_equal(q.state.master_addr, "pod-0");
    assert_int_equal(q.state.master_port, 29500);
    /* The same while it runs: the run starts again. */
    numbered(&q, 7, 2);
    assert_true(quorum_step(&q, 10));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    quorum_release(&q);
}

static void test_a_launcher_that_cannot_start_its_ranks(void **state)
{
    struct quorum q;

    (void)state;
    begin(&q, &fixed_2, 2);
    struct meeting_node n = {.phase = NODE_FAILED, .round = 0, .nproc = 1, .beat = 9999};
    n.cause = (struct meeting_cause){.rank = -1, .status = 1 << 8, .message = "h: cannot run x"};
    quorum_hear(&q, 1, &n, 31000);
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.end, END_FAILED); /* restarts would not help */
    assert_string_equal(q.state.why, "h: cannot run x");
    quorum_release(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_that_goes_well),
        cmocka_unit_test(test_last_call),
        cmocka_unit_test(test_too_few_in_time),
        cmocka_unit_test(test_failures_use_restarts_everywhere),
        cmocka_unit_test(test_root_cause_is_awaited),
        cmocka_unit_test(test_a_node_comes),
        cmocka_unit_test(test_a_node_is_lost),
        cmocka_unit_test(test_a_connection_ends),
        cmocka_unit_test(test_a_loss_while_forming),
        cmocka_unit_test(test_failures_of_a_loss),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_a_stopped_chair_loses_nobody),
        cmocka_unit_test(test_a_node_is_told_to_go),
        cmocka_unit_test(test_fixed_ranks),
        cmocka_unit_test(test_a_launcher_that_cannot_start_its_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
