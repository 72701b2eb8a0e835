/* test_quorum_lost.c - nodes that fall silent or whose connection ends: when they count as lost, and what follows. */
#include "play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_a_node_is_lost(void **state)
{
    struct quorum_config c = play_fixed_2;
    struct quorum q;

    (void)state;
    play_begin(&q, &c, 2);
    const int64_t at = 30001;
    for (int64_t now = at; now < at + 15000; now += 1000) {
        play_hear(&q, 2, NODE_RUNNING, now);
        assert_false(quorum_step(&q, now));
    }
    play_hear(&q, 2, NODE_RUNNING, at + 15000);
    assert_true(quorum_step(&q, at + 15000));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_int_equal(q.state.restarts, 0);
    assert_non_null(strstr(q.state.why, "node 10.0.0.1 was lost"));
    play_hear(&q, 2, NODE_JOINING, at + 15001);
    assert_false(quorum_step(&q, at + 15001));
    /* A new word is a sign of life: stopped, and continued. */
    assert_true(q.slots[0].gone);
    play_hear(&q, 1, NODE_JOINING, at + 15003);
    assert_true(quorum_step(&q, at + 15003));
    PLAY_EXPECT(&q, 2, 1);
    quorum_release(&q);
    /* A size that is fixed, and no restarts: nothing to wait for. */
    c.restarts = 0;
    play_begin(&q, &c, 2);
    for (int64_t now = at; now <= at + 14000; now += 1000) {
        play_hear(&q, 2, NODE_RUNNING, now);
        quorum_step(&q, now);
    }
    assert_true(quorum_step(&q, at + 15000));
    assert_int_equal(q.state.end, END_LOST);
    assert_int_equal(q.state.blame, 1);
    quorum_release(&q);
}

/* A rank noticed that a peer is gone. The node that has not been heard of for a heartbeat decides: it is lost, or it speaks. */
static void test_a_peer_is_gone(void **state)
{
    struct quorum_config c = play_fixed_2;
    const int64_t at = 30001;
    struct quorum q;

    (void)state;
    c.restarts = 0;
    for (int lost = 0; lost < 2; lost++) {
        play_begin(&q, &c, 2);
        play_failure(&q, 2, 140, 2, at + 4900);
        assert_true(quorum_step(&q, at + 4900)); /* it waits for the other's cause */
        assert_false(quorum_step(&q, at + 4900));
        for (int64_t now = at + 5001; now < at + 15000; now += 333) {
            play_failure(&q, 2, 140, 2, now); /* its heartbeat */
            assert_false(quorum_step(&q, now));
        }
        if (!lost)
            play_hear(&q, 1, NODE_RUNNING, at + 14999);
        assert_true(quorum_step(&q, at + 15000));
        assert_int_equal(q.state.end, lost ? END_LOST : END_FAILED);
        assert_int_equal(q.state.blame, lost ? 1 : 2);
        if (lost)
            assert_string_equal(q.state.why, "node 10.0.0.1 was lost: it sent nothing for too long");
        quorum_release(&q);
    }
}

static void test_a_connection_ends(void **state)
{
    const int64_t at = 30001;
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    quorum_disconnected(&q, 7, at); /* nobody that is known */
    quorum_disconnected(&q, 1, at);
    assert_false(quorum_step(&q, at));
    assert_int_equal(quorum_next_ms(&q, at), at + QUORUM_RECONNECT_MS);
    /* A word over a newer connection changes everything. */
    play_hear(&q, 1, NODE_RUNNING, at + QUORUM_RECONNECT_MS - 1);
    assert_false(quorum_step(&q, at + QUORUM_RECONNECT_MS));
    quorum_disconnected(&q, 1, at + 2000);
    assert_false(quorum_step(&q, at + 2000 + QUORUM_RECONNECT_MS - 1));
    assert_true(quorum_step(&q, at + 2000 + QUORUM_RECONNECT_MS));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_string_equal(q.state.why,
                        "node 10.0.0.1 was lost: its launcher's connection ended: all ranks start again");
    /* It comes back after all. */
    play_hear(&q, 2, NODE_JOINING, at + 2600);
    assert_false(quorum_step(&q, at + 2600));
    play_hear(&q, 1, NODE_JOINING, at + 2700);
    assert_true(quorum_step(&q, at + 2700));
    PLAY_EXPECT(&q, 2, 1);
    quorum_release(&q);
}

/* Two are gone at once, and one of them had no place in the round: the other is named. */
static void test_the_one_that_is_missed_is_named(void **state)
{
    const int64_t at = 30001;
    const struct quorum_config c = play_elastic(1, 2);
    struct quorum q;

    (void)state;
    play_begin(&q, &c, 2);
    play_hear(&q, 3, NODE_JOINING, at);
    quorum_disconnected(&q, 1, at);
    quorum_disconnected(&q, 3, at);
    assert_false(quorum_step(&q, at));
    assert_true(quorum_step(&q, at + QUORUM_RECONNECT_MS));
    assert_non_null(strstr(q.state.why, "node 10.0.0.1 was lost"));
    quorum_release(&q);
}

/* A node that is lost while a round forms may come again, as one that is lost while it runs: the rest waits for the last
 * call. One that was ordered to end will not. */
static void test_a_loss_while_forming(void **state)
{
    const int64_t at = 30001;
    const struct quorum_config c = play_elastic(1, 3);
    struct quorum q;

    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        play_begin(&q, &c, 3);
        play_failure(&q, 3, 7, 0, at);
        assert_true(quorum_step(&q, at));
        assert_int_equal(q.state.stage, STAGE_FORMING);
        play_hear(&q, 2, NODE_JOINING, at + 1);
        play_hear(&q, 3, NODE_JOINING, at + 1);
        if (leaves)
            play_hear(&q, 1, NODE_LEAVING, at + 1);
        quorum_disconnected(&q, 1, at + 1);
        const bool at_once = quorum_step(&q, at + 1) || quorum_step(&q, at + 1 + QUORUM_RECONNECT_MS);
        assert_int_equal(at_once, leaves);
        play_hear(&q, 2, NODE_JOINING, at + 30000);
        play_hear(&q, 3, NODE_JOINING, at + 30000);
        if (!leaves)
            assert_true(quorum_step(&q, at + 1 + 30000));
        PLAY_EXPECT(&q, 2, 3);
        quorum_release(&q);
    }
}

/* Three nodes are waited for, two have joined; then the first is heard no more, or its connection ends. */
static bool first_is_lost(const struct quorum_config *c, int64_t wanted, bool cut, struct quorum *q)
{
    const int64_t at = 15001;
    struct meeting_node n = {.phase = NODE_JOINING, .beat = 1, .nproc = 1, .wanted = wanted};

    quorum_init(q, c, 0);
    snprintf(n.addr, sizeof(n.addr), "10.0.0.1");
    quorum_hear(q, 1, &n, 1);
    n.wanted = 1;
    for (int64_t now = 1; now <= at; now += 1000) {
        n.beat++;
        quorum_hear(q, 2, &n, now);
        if (cut)
            quorum_disconnected(q, 1, now);
        if (quorum_step(q, now)) {
            assert_int_equal(now, at);
            return true;
        }
    }
    return false;
}

/* Where a lost node ends a run, one that falls silent before the others have come ends it too. One whose connection
 * ended may come again: whoever started it knows that it has ended. */
static void test_a_silence_while_forming(void **state)
{
    struct quorum_config c = play_elastic(3, 3);
    struct quorum q;

    (void)state;
    c.restarts = 0;
    for (int fixed = 0; fixed < 2; fixed++) {
        c.fixed_ranks = fixed;
        assert_true(first_is_lost(&c, 0, false, &q));
        assert_int_equal(q.state.end, END_LOST);
        assert_int_equal(q.state.blame, 1);
        assert_non_null(strstr(q.state.why, "(10.0.0.1) was lost: it sent nothing for too long"));
        quorum_release(&q);
        assert_false(first_is_lost(&c, 0, true, &q));
        quorum_release(&q);
    }
    /* A rank that there is not: its node was never waited for. */
    assert_false(first_is_lost(&c, 3, false, &q));
    quorum_release(&q);
    assert_false(first_is_lost(&c, -1, false, &q));
    quorum_release(&q);
    /* Its place was taken meanwhile. */
    assert_false(first_is_lost(&c, 1, false, &q));
    quorum_release(&q);
    /* Where the rest would start again, a node may come back. */
    c.restarts = 1;
    assert_false(first_is_lost(&c, 0, false, &q));
    quorum_release(&q);
    c = play_elastic(3, 4);
    c.restarts = 0;
    assert_false(first_is_lost(&c, 0, false, &q));
    quorum_release(&q);
}

/* Ranks whose peers' node is gone fail too, in their own ways: that uses no restart and is not the cause. */
static void test_failures_of_a_loss(void **state)
{
    const int64_t at = 30001;
    struct quorum_config c = play_elastic(1, 2);
    struct quorum q;

    (void)state;
    c.restarts = 0;
    play_begin(&q, &c, 2);
    quorum_disconnected(&q, 1, at);
    play_failure(&q, 2, 1, 0, at);
    assert_false(quorum_step(&q, at));
    assert_true(quorum_step(&q, at + QUORUM_RECONNECT_MS));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_non_null(strstr(q.state.why, "node 10.0.0.1 was lost"));
    quorum_release(&q);
    /* It was not gone: then the failure is what it seemed. */
    play_begin(&q, &c, 2);
    quorum_disconnected(&q, 1, at);
    play_failure(&q, 2, 1, 0, at + 1);
    assert_false(quorum_step(&q, at + 1));
    play_hear(&q, 1, NODE_RUNNING, at + 2);
    assert_true(quorum_step(&q, at + 2));
    assert_int_equal(q.state.end, END_FAILED);
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
    /* First the failure, then the loss. */
    play_begin(&q, &c, 2);
    play_failure(&q, 2, 1, 0, at);
    quorum_disconnected(&q, 1, at + 1);
    assert_true(quorum_step(&q, at + 1));
    assert_int_equal(q.state.end, END_FAILED);
    quorum_release(&q);
}

/* What a node reported before it was cut off counts: it has done its part, or was ordered to end. */
static void test_last_words(void **state)
{
    const int64_t at = 30001;
    const struct quorum_config c = play_elastic(1, 2);
    struct quorum q;

    (void)state;
    play_begin(&q, &c, 2);
    play_hear(&q, 1, NODE_DONE, at);
    quorum_disconnected(&q, 1, at);
    assert_false(quorum_step(&q, at + QUORUM_RECONNECT_MS));
    play_hear(&q, 2, NODE_DONE, at + 600);
    assert_true(quorum_step(&q, at + 600));
    assert_int_equal(q.state.end, END_SUCCESS);
    quorum_release(&q);
    play_begin(&q, &c, 2);
    play_hear(&q, 1, NODE_LEAVING, at);
    quorum_disconnected(&q, 1, at);
    assert_true(quorum_step(&q, at));
    assert_non_null(strstr(q.state.why, "stopped by signal 15"));
    play_hear(&q, 2, NODE_JOINING, at + 1);
    assert_true(quorum_step(&q, at + QUORUM_RECONNECT_MS) ||
                quorum_step(&q, at + 30000 + QUORUM_RECONNECT_MS));
    PLAY_EXPECT(&q, 2);
    quorum_release(&q);
}

/* It is no newcomer's turn once a member is done, also where that has gone since: the others may be about to end. */
static void test_done_and_gone(void **state)
{
    const int64_t at = 30001;
    const struct quorum_config c = play_elastic(1, 3);
    struct quorum q;

    (void)state;
    play_begin(&q, &c, 2);
    play_hear(&q, 1, NODE_DONE, at);
    quorum_disconnected(&q, 1, at);
    assert_false(quorum_step(&q, at + QUORUM_RECONNECT_MS));
    play_hear(&q, 3, NODE_JOINING, at + 600);
    assert_false(quorum_step(&q, at + 600));
    play_hear(&q, 2, NODE_DONE, at + 700);
    assert_true(quorum_step(&q, at + 700));
    assert_int_equal(q.state.end, END_SUCCESS);
    quorum_release(&q);
}

/* A loss that is seen in the same step as a failure that may follow from it is not forgotten while that is looked into. */
static void test_lost_beside_an_unsure_failure(void **state)
{
    const int64_t at = 30001;
    const struct quorum_config c = play_elastic(1, 2);
    struct quorum q;

    (void)state;
    play_begin(&q, &c, 2);
    quorum_disconnected(&q, 1, at);
    play_failure(&q, 2, 140, 1, at + QUORUM_RECONNECT_MS);
    assert_true(quorum_step(&q, at + QUORUM_RECONNECT_MS)); /* it waits for a cause */
    assert_int_equal(q.state.stage, STAGE_RUNNING);
    assert_true(quorum_step(&q, at + QUORUM_RECONNECT_MS));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_non_null(strstr(q.state.why, "node 10.0.0.1 was lost"));
    quorum_release(&q);
}

/* A member hears that its round begins, or ought to, and never starts its ranks. */
static void test_a_member_that_does_not_start(void **state)
{
    const int64_t at = 1;
    struct quorum_config c = play_fixed_2;
    struct quorum q;

    (void)state;
    c.restarts = 0;
    quorum_init(&q, &c, 0);
    play_all(&q, 2, NODE_JOINING, at);
    assert_true(quorum_step(&q, at));
    struct meeting_node word = q.slots[0].node;
    assert_int_equal(q.slots[0].ticket, 1);
    for (int64_t now = at; now < at + 30000; now += 1000) {
        word.beat += 1000;
        quorum_hear(&q, 1, &word, now);
        play_hear(&q, 2, NODE_RUNNING, now);
        assert_false(quorum_step(&q, now));
    }
    assert_true(quorum_step(&q, at + 30000));
    assert_int_equal(q.state.end, END_LOST);
    assert_int_equal(q.state.blame, 1);
    assert_string_equal(q.state.why, "node 10.0.0.1 was lost: it did not start its ranks");
    quorum_release(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_member_that_does_not_start),
        cmocka_unit_test(test_a_node_is_lost),
        cmocka_unit_test(test_a_peer_is_gone),
        cmocka_unit_test(test_a_connection_ends),
        cmocka_unit_test(test_the_one_that_is_missed_is_named),
        cmocka_unit_test(test_a_loss_while_forming),
        cmocka_unit_test(test_a_silence_while_forming),
        cmocka_unit_test(test_failures_of_a_loss),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_done_and_gone),
        cmocka_unit_test(test_lost_beside_an_unsure_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
