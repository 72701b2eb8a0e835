/* test_node.c - one node and what its leader says, or does not: when the leader is lost, and when it is not. */
#include "rendezvous/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SILENCE_MS = 15000 };

static struct node n;
static struct node_action last; /* the last action of `drain` */
static uint32_t dialed;         /* the last connection that was asked for */

static int setup(void **state)
{
    const struct node_config c = {.run_id = "run",
                                  .join_ms = 60000,
                                  .keep_alive_ms = 5000,
                                  .keep_alive_attempts = 3,
                                  .nproc = 1,
                                  .wanted = -1,
                                  .role = ""};

    (void)state;
    node_init(&n, &c, 0);
    dialed = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    node_release(&n);
    return 0;
}

static void drain(int64_t now)
{
    struct node_action a;

    node_step(&n, now);
    while (node_act(&n, &a, now)) {
        last = a;
        dialed = a.kind == NODE_DIAL ? a.number : dialed;
    }
}

static bool hear(uint32_t number, const struct message *m, int64_t now)
{
    const bool good = node_heard(&n, number, m, now);

    drain(now);
    return good;
}

static void challenge(uint32_t number, char leader, int64_t now)
{
    struct message m = {.type = MESSAGE_CHALLENGE};

    m.challenge.leader[0] = (uint8_t)leader;
    assert_true(hear(number, &m, now));
}

static void open_to(uint32_t number, int64_t now)
{
    node_connected(&n, number, "10.0.0.7", now);
    drain(now);
    assert_int_equal(last.kind, NODE_SEND);
    assert_int_equal(last.message.type, MESSAGE_HELLO);
}

static void welcome(uint32_t number, char leader, int64_t now)
{
    const struct message m = {.type = MESSAGE_WELCOME, .ticket = 1};

    open_to(number, now);
    challenge(number, leader, now);
    assert_true(hear(number, &m, now));
}

static void tell(uint32_t number, int64_t version, enum meeting_stage stage, int64_t now)
{
    static struct meeting_state s;
    const struct message m = {.type = MESSAGE_STATE, .state = &s};

    s = (struct meeting_state){.version = version, .stage = stage, .keep_alive_ms = 5000, .n = 1};
    s.members[0] = (struct meeting_member){.ticket = 1, .nproc = 1};
    assert_true(hear(number, &m, now));
}

static void answer(uint32_t number, int64_t now)
{
    const struct message m = {.type = MESSAGE_HEARD, .beat = n.line.sent};

    assert_true(hear(number, &m, now));
}

/* Its ranks run, over connection 1. */
static void run(int64_t now)
{
    int rank;

    drain(now);
    welcome(1, 'a', now);
    tell(1, 1, STAGE_FORMING, now);
    answer(1, now);
    tell(1, 2, STAGE_RUNNING, now);
    assert_true(node_begins(&n, &rank));
    drain(now);
    answer(1, now);
    assert_int_equal(n.stage, NODE_RUNS);
}

/* The ranks of a node whose leader fell silent are stopped, also where somebody else is met at the endpoint meanwhile and the leader
 * goes on. */
static void test_lost_is_lost(void **state)
{
    uint32_t greeted = 0;
    int64_t now = 1;

    (void)state;
    run(now);
    for (; !node_must_stop(&n) && now < 100000; now += 100) {
        drain(now);
        if (now > 19000 && dialed != greeted) /* a candidate that is greeted when the silence is over */
            node_connected(&n, greeted = dialed, "10.0.0.7", now);
    }
    assert_in_range(now, SILENCE_MS, SILENCE_MS + 6000);
    struct message m = {.type = MESSAGE_CHALLENGE, .challenge.leader = "b"};
    assert_true(node_heard(&n, dialed, &m, now));
    answer(1, now); /* it goes on, too late */
    assert_true(node_must_stop(&n));
    node_rested(&n, false);
    drain(now + 1);
    assert_int_equal(n.stage, NODE_OVER);
    assert_int_equal(n.over.why, NODE_WHY_LOST);
}

/* A leader that welcomes and tells nothing is left, and whoever leads there next is another one. */
static void test_a_mute_leader(void **state)
{
    int64_t now = 1;

    (void)state;
    drain(now);
    welcome(1, 'a', now);
    for (; now < 2 * SILENCE_MS && dialed == 1; now += 100)
        drain(now);
    assert_in_range(now, SILENCE_MS, SILENCE_MS + 1000);
    assert_int_equal(n.stage, NODE_REACHES);
    assert_false(n.line.welcomed); /* so its address is no longer kept */
    assert_non_null(strstr(n.line.why, "told"));
    welcome(2, 'b', now);
    tell(2, 1, STAGE_FORMING, now);
    assert_int_equal(n.stage, NODE_WAITS);
}

/* The leader ended the connection, and this process stood still while it was to dial. */
static void test_a_pause_after_the_end(void **state)
{
    (void)state;
    run(1);
    node_closed(&n, 1, LINK_CLOSED, "reset", 1000);
    drain(1000);
    assert_int_equal(dialed, 2);
    drain(4000);
    assert_false(node_must_stop(&n));
    welcome(dialed, 'a', 4001);
    drain(4002);
    assert_false(node_must_stop(&n));
    answer(dialed, 4003);
    /* Without a pause half a second is enough. */
    node_closed(&n, dialed, LINK_CLOSED, "reset", 5000);
    for (int64_t now = 5000; now < 5500; now += 50) {
        drain(now);
        assert_false(node_must_stop(&n));
    }
    drain(5500);
    assert_true(node_must_stop(&n));
}

/* What the leader said before comes late, over a connection that was given up. */
static void test_an_old_state(void **state)
{
    (void)state;
    run(1);
    tell(1, 1, STAGE_ENDED, 2);
    assert_false(node_must_stop(&n));
    tell(1, 3, STAGE_ENDED, 3);
    assert_true(node_must_stop(&n));
}

/* A node whose ranks still run says at once that it knows the end: the host does not wait for its ranks. */
static void test_the_end_is_said_while_ranks_run(void **state)
{
    (void)state;
    run(1);
    tell(1, 3, STAGE_ENDED, 2);
    assert_int_equal(n.stage, NODE_RUNS);
    assert_int_equal(last.message.type, MESSAGE_NODE);
    assert_int_equal(last.message.node.phase, NODE_RUNNING);
    assert_int_equal(last.message.node.heard_end, 1);
    drain(3);
    assert_true(n.say.heard_end && !n.line.dirty); /* once */
    node_rested(&n, false);
    drain(4);
    assert_int_equal(n.stage, NODE_OVER);
    assert_int_equal(n.over.why, NODE_WHY_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lost_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_mute_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_old_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_end_is_said_while_ranks_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pause_after_the_end, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
