/* test_quorum_hang.c - when a round hangs, and who is to blame. */
#include "play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { T0 = 30001 }; /* play_begin's last word */

static void say(struct quorum *q, int64_t ticket, enum node_phase phase, bool quiet,
                struct meeting_cause cause, int64_t now)
{
    static int64_t beat = 1 << 20;
    const struct meeting_node n = {.phase = phase,
                                   .round = q->state.round,
                                   .beat = ++beat,
                                   .nproc = 1,
                                   .wanted = -1,
                                   .quiet = quiet,
                                   .done = q->state.done,
                                   .number = ticket * 10,
                                   .call = ticket,
                                   .cause = cause};

    quorum_hear(q, ticket, &n, now);
}

static void quiet(struct quorum *q, int64_t ticket, bool yes, int64_t now)
{
    say(q, ticket, NODE_RUNNING, yes, (struct meeting_cause){.rank = -1}, now);
}

static void suspect(struct quorum *q, int64_t ticket, int strength, int64_t place, int64_t number,
                    int64_t now)
{
    const struct meeting_cause c = {
        .rank = ticket, .status = 138 << 8, .strength = strength, .place = place, .number = number};

    say(q, ticket, NODE_FAILED, true, c, now);
}

/* All of n nodes are quiet: the round hangs. */
static void begin(struct quorum *q, const struct quorum_config *c, int n)
{
    play_begin(q, c, n);
    for (int64_t t = 1; t < n; t++) {
        quiet(q, t, true, T0 + t);
        assert_false(quorum_step(q, T0 + t));
    }
    quiet(q, n, true, T0 + n);
    const int64_t version = q->state.version;
    assert_true(quorum_step(q, T0 + n));
    assert_true(q->state.hung && q->state.version == version + 1 && q->state.stage == STAGE_RUNNING);
    assert_int_equal(q->state.number, 10 * n);
    assert_int_equal(q->state.call, n);
    assert_false(quorum_step(q, T0 + n));
    assert_int_equal(quorum_next_ms(q, T0 + n), T0 + n + QUORUM_HANG_MS);
}

static void expect_end(struct quorum *q, int64_t blame, int64_t now)
{
    assert_true(quorum_step(q, now));
    assert_int_equal(q->state.stage, STAGE_ENDED);
    assert_int_equal(q->state.end, END_FAILED);
    assert_int_equal(q->state.blame, blame);
    assert_int_equal(q->state.cause.rank, blame);
    assert_int_equal(q->state.restarts, 0); /* whatever --max-restarts is */
    quorum_release(q);
}

/* One node that is not quiet is enough, and each may change its mind. */
static void test_only_all_of_them_hang(void **state)
{
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    for (int64_t i = 0; i < 10; i++) {
        quiet(&q, 1 + i % 2, true, T0 + 2 * i);
        assert_false(quorum_step(&q, T0 + 2 * i));
        quiet(&q, 1 + i % 2, false, T0 + 2 * i + 1);
        assert_false(quorum_step(&q, T0 + 2 * i + 1));
    }
    assert_int_equal(q.state.hung, 0);
    quorum_release(&q);
    begin(&q, &play_fixed_2, 2);
    suspect(&q, 1, STRENGTH_UNKNOWN, 0, 0, T0 + 10);
    assert_false(quorum_step(&q, T0 + 10)); /* node 2 has not reported */
    suspect(&q, 2, STRENGTH_STOPPED, 0, 0, T0 + 11);
    expect_end(&q, 2, T0 + 11);
}

/* A node whose ranks have succeeded waits for the others. Its end is a sign of life: the others are polled again. When all have ended, there is no hang. */
static void test_nodes_that_are_done(void **state)
{
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    play_hear(&q, 1, NODE_DONE, T0);
    assert_false(quorum_step(&q, T0));
    quiet(&q, 2, true, T0 + 1);
    const int64_t version = q.state.version;
    assert_true(quorum_step(&q, T0 + 1));
    assert_true(q.state.hung == 0 && q.state.done == 1 && q.state.version == version + 1);
    assert_false(quorum_step(&q, T0 + 1)); /* its word was of before */
    quiet(&q, 2, true, T0 + 1);
    assert_true(quorum_step(&q, T0 + 1));
    assert_int_equal(q.state.hung, 1);
    suspect(&q, 2, STRENGTH_UNKNOWN, 0, 0, T0 + 2);
    expect_end(&q, 2, T0 + 2);
    begin(&q, &play_fixed_2, 2);
    play_all(&q, 2, NODE_DONE, T0 + 9);
    assert_true(quorum_step(&q, T0 + 9));
    assert_int_equal(q.state.end, END_SUCCESS);
    quorum_release(&q);
}

/* A quiet node of the last round, or one that joins, does not count. */
/* A node whose ranks have ended well may be gone, too: the others hang all the same. */
static void test_a_node_that_is_done_and_gone(void **state)
{
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    say(&q, 1, NODE_DONE, false, (struct meeting_cause){.rank = -1}, T0);
    quorum_disconnected(&q, 1, T0);
    assert_false(quorum_step(&q, T0 + QUORUM_RECONNECT_MS));
    quiet(&q, 2, true, T0 + 600);
    assert_true(quorum_step(&q, T0 + 600));
    assert_int_equal(q.state.done, 1); /* a sign of life */
    quiet(&q, 2, true, T0 + 700);
    assert_true(quorum_step(&q, T0 + 700));
    assert_true(q.state.hung);
    quorum_release(&q);
}

static void test_other_rounds(void **state)
{
    const struct quorum_config c = play_elastic(2, 3);
    struct quorum q;

    (void)state;
    begin(&q, &c, 3);
    quorum_disconnected(&q, 3, T0 + 10);
    assert_false(quorum_step(&q, T0 + 10));
    assert_true(quorum_step(&q, T0 + 10 + QUORUM_RECONNECT_MS)); /* lost: the others start again */
    assert_true(q.state.stage == STAGE_FORMING && !q.state.hung && !q.state.number && !q.state.call);
    const int64_t now = T0 + 11 + QUORUM_RECONNECT_MS;
    play_hear(&q, 1, NODE_JOINING, now);
    play_hear(&q, 2, NODE_JOINING, now);
    quorum_step(&q, now);
    play_hear(&q, 1, NODE_JOINING, now + c.last_call_ms);
    play_hear(&q, 2, NODE_JOINING, now + c.last_call_ms);
    assert_true(quorum_step(&q, now + c.last_call_ms) || q.state.stage == STAGE_RUNNING);
    quorum_release(&q);
}

static void test_the_strongest(void **state)
{
    static const struct {
        int64_t cause[3][3]; /* strength, place, number of nodes 1 to 3 */
        int64_t blame;
    } cases[] = {
        {{{STRENGTH_BEHIND, 0, 4}, {STRENGTH_STOPPED, 0, 9}, {STRENGTH_DISK, 0, 1}}, 2},
        {{{STRENGTH_UNKNOWN, 0, 9}, {STRENGTH_UNKNOWN, 0, 9}, {STRENGTH_ODD, 0, 9}}, 3},
        {{{STRENGTH_BEHIND, 0, 5}, {STRENGTH_BEHIND, 0, 5}, {STRENGTH_BEHIND, 0, 4}}, 3},
        {{{STRENGTH_BEHIND, 0, 5}, {STRENGTH_BEHIND, 0, 4}, {STRENGTH_BEHIND, 0, 4}}, 2},
        {{{STRENGTH_STACK, 77, 0}, {STRENGTH_STACK, 78, 0}, {STRENGTH_STACK, 77, 0}}, 2},
        {{{STRENGTH_STACK, 77, 0}, {STRENGTH_UNKNOWN, 1, 0}, {STRENGTH_UNKNOWN, 2, 0}}, 1},
        {{{STRENGTH_UNKNOWN, 0, 0}, {STRENGTH_UNKNOWN, 0, 0}, {STRENGTH_UNKNOWN, 0, 0}}, 1},
        {{{STRENGTH_NONE, 0, 0}, {STRENGTH_UNKNOWN, 0, 0}, {STRENGTH_NONE, 0, 0}},
         2}, /* failed when others were killed */
    };
    const struct quorum_config c = play_elastic(2, 3);
    const int64_t now = T0 + 10 + QUORUM_LOOK_MS;
    struct quorum q;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        begin(&q, &c, 3);
        for (int64_t t = 3; t >= 1; t--) {
            assert_false(quorum_step(&q, now));
            suspect(&q, t, (int)cases[i].cause[t - 1][0], cases[i].cause[t - 1][1], cases[i].cause[t - 1][2],
                    now);
        }
        expect_end(&q, cases[i].blame, now);
    }
}

/* While launchers look at their ranks they kill none: a failure then is the rank's own, unless its exit code means that a peer was lost. */
static void test_a_failure_while_they_look(void **state)
{
    struct quorum q;

    (void)state;
    begin(&q, &play_fixed_2, 2);
    play_failure(&q, 2, 7, 0, T0 + QUORUM_LOOK_MS);
    assert_true(quorum_step(&q, T0 + QUORUM_LOOK_MS));
    assert_true(q.state.stage == STAGE_FORMING && q.state.restarts == 1 && !q.state.hung);
    quorum_release(&q);
    begin(&q, &play_fixed_2, 2);
    play_failure(&q, 2, 7, 2, T0 + 10);
    suspect(&q, 1, STRENGTH_UNKNOWN, 0, 0, T0 + 3000);
    expect_end(&q, 1, T0 + 3000);
}

static void test_those_who_do_not_tell(void **state)
{
    struct quorum q;

    (void)state;
    begin(&q, &play_fixed_2, 2);
    suspect(&q, 1, STRENGTH_UNKNOWN, 0, 0, T0 + 10);
    assert_false(quorum_step(&q, T0 + 1 + QUORUM_HANG_MS));
    expect_end(&q, 1, T0 + 2 + QUORUM_HANG_MS);
    begin(&q, &play_fixed_2, 2);
    assert_false(quorum_step(&q, T0 + 1 + QUORUM_HANG_MS));
    assert_true(quorum_step(&q, T0 + 2 + QUORUM_HANG_MS));
    assert_int_equal(q.state.end, END_TIMEOUT);
    quorum_release(&q);
    /* A node that leaves reports nothing, and nobody waits for it. */
    begin(&q, &play_fixed_2, 2);
    play_hear(&q, 1, NODE_LEAVING, T0 + 10);
    assert_true(quorum_step(&q, T0 + 10));
    assert_int_equal(q.state.end, END_SIGNAL);
    quorum_release(&q);
}

/* Before the round hangs a failure counts as always. */
static void test_a_failure_before(void **state)
{
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    quiet(&q, 1, true, T0 + 1);
    play_failure(&q, 2, 7, 0, T0 + 2);
    assert_true(quorum_step(&q, T0 + 2));
    assert_true(q.state.stage == STAGE_FORMING && q.state.restarts == 1);
    quorum_release(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_all_of_them_hang),
        cmocka_unit_test(test_nodes_that_are_done),
        cmocka_unit_test(test_a_node_that_is_done_and_gone),
        cmocka_unit_test(test_other_rounds),
        cmocka_unit_test(test_the_strongest),
        cmocka_unit_test(test_those_who_do_not_tell),
        cmocka_unit_test(test_a_failure_before),
        cmocka_unit_test(test_a_failure_while_they_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
