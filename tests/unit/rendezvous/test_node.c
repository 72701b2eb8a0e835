/* test_node.c - one node and the messages of its leader, or their absence: when the leader counts as lost, and when not. */
#include "rendezvous/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SILENCE_MS = 15000 };

static struct node n;
static struct node_action last; /* the last action of `drain` */
static uint32_t dialed;         /* the last connection that was requested */

static void begin(const char *key)
{
    struct node_config c = {.run_id = "run",
                            .join_ms = 60000,
                            .keep_alive_ms = 5000,
                            .keep_alive_attempts = 3,
                            .nproc = 1,
                            .wanted = -1,
                            .role = ""};

    c.key = (struct jobkey){.has = key[0] != '\0'};
    memcpy(c.key.bytes, key, strlen(key));
    node_init(&n, &c, 0);
    dialed = 0;
}

static int setup(void **state)
{
    (void)state;
    begin("");
    return 0;
}

static int setup_key(void **state)
{
    (void)state;
    begin("key");
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

static struct message_hello hello; /* the last that the node sent */

/* A CHALLENGE of somebody with this key. */
static struct message challenge_of(const struct jobkey *key, char leader)
{
    struct message m = {.type = MESSAGE_CHALLENGE, .challenge = {.auth = key->has}};

    m.challenge.leader[0] = (uint8_t)leader;
    message_prove(key, MESSAGE_CHALLENGE, &hello, &m.challenge, m.challenge.answer);
    return m;
}

static void challenge(uint32_t number, char leader, int64_t now)
{
    const struct message m = challenge_of(&n.config.key, leader);

    assert_true(hear(number, &m, now));
}

static void open_to(uint32_t number, int64_t now)
{
    node_connected(&n, number, "10.0.0.7", now);
    drain(now);
    assert_int_equal(last.kind, NODE_SEND);
    assert_int_equal(last.message.type, MESSAGE_HELLO);
    hello = last.message.hello;
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
 * continues. */
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
    answer(1, now); /* it continues, too late */
    assert_true(node_must_stop(&n));
    node_ranks_ended(&n, false);
    drain(now + 1);
    assert_int_equal(n.stage, NODE_OVER);
    assert_int_equal(n.over.why, NODE_WHY_LOST);
}

/* A leader that admits the node and sends no state is given up, and the next leader there is another one. */
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
    assert_non_null(strstr(n.line.why, "sent no state"));
    welcome(2, 'b', now);
    tell(2, 1, STAGE_FORMING, now);
    assert_int_equal(n.stage, NODE_WAITS);
}

/* A leader that ends before it has sent a state: this node may be the next to lead, so it resolves the endpoint again. */
static void test_a_leader_that_ends_at_once(void **state)
{
    (void)state;
    drain(1);
    welcome(1, 'a', 1);
    node_closed(&n, 1, LINK_CLOSED, "reset", 2);
    assert_false(n.line.welcomed);
    drain(2);
    assert_int_equal(dialed, 2);
    assert_int_equal(n.stage, NODE_REACHES);
    welcome(2, 'b', 3);
    tell(2, 1, STAGE_FORMING, 4);
    assert_int_equal(n.stage, NODE_WAITS);
    node_closed(&n, 2, LINK_CLOSED, "reset", 5);
    assert_true(n.line.welcomed); /* it knows the state of that run */
}

/* Whether a launcher is there is known of the last try alone: the next may meet another program. */
static void test_who_was_met(void **state)
{
    const struct message no = {.type = MESSAGE_REFUSED, .refusal = REFUSED_RUN};
    int64_t now = 1;

    (void)state;
    for (int i = 0; i < 2; i++) {
        drain(now += NODE_REST_MS);
        open_to(dialed, now);
        assert_true(hear(dialed, &no, now));
        assert_true(n.line.met);
        drain(now += NODE_REST_MS);
        assert_true(n.line.met);
        assert_string_equal(n.line.why, "another run is there");
        if (i) {
            open_to(dialed, now);
            drain(now += NODE_CANDIDATE_MS);
        } else
            node_closed(&n, dialed, LINK_CLOSED, "Connection refused", now);
        assert_false(n.line.met);
    }
}

/* An earlier message of the leader comes late, over a connection that was given up. */
static void test_an_old_state(void **state)
{
    (void)state;
    run(1);
    tell(1, 1, STAGE_ENDED, 2);
    assert_false(node_must_stop(&n));
    tell(1, 3, STAGE_ENDED, 3);
    assert_true(node_must_stop(&n));
}

/* Who has no key, another one, or an old CHALLENGE, is left; neither that nor its REFUSED decides anything. */
static void test_a_leader_without_a_proof(void **state)
{
    static const struct jobkey keys[] = {{0}, {.has = true, .bytes = "kez"}, {.has = true, .bytes = "key"}};
    const struct message no = {.type = MESSAGE_REFUSED, .refusal = REFUSED_AUTH};
    const struct message run_no = {.type = MESSAGE_REFUSED, .refusal = REFUSED_RUN};
    const struct message welcomed = {.type = MESSAGE_WELCOME, .ticket = 1};
    int64_t now = 1;

    (void)state;
    drain(now);
    open_to(1, now);
    const struct message old = challenge_of(&keys[2], 'x');
    node_closed(&n, 1, LINK_CLOSED, "it ended", now);
    for (int i = 0; i < 5; i++) {
        drain(now += NODE_REST_MS);
        open_to(dialed, now);
        const struct message m = i == 0   ? old
                                 : i < 3  ? challenge_of(&keys[i - 1], 'x')
                                 : i == 3 ? no
                                          : run_no;
        assert_true(node_heard(&n, dialed, &m, now));
        assert_true(node_heard(&n, dialed, &welcomed, now)); /* and passed over */
        drain(now);
        assert_int_equal(last.kind, NODE_CLOSE);
        assert_int_equal(n.stage, NODE_REACHES);
        assert_false(n.line.welcomed);
        assert_true(n.line.why[0]);
    }
    /* The same while its ranks run and it has lost its connection: only the silence decides. */
    drain(now += NODE_REST_MS);
    welcome(dialed, 'a', now);
    tell(dialed, 1, STAGE_RUNNING, now);
    answer(dialed, now);
    node_closed(&n, dialed, LINK_CLOSED, "reset", now);
    for (int i = 0; i < 20; i++) {
        drain(now += NODE_REST_MS);
        open_to(dialed, now);
        const struct message m = i % 2 ? no : challenge_of(&keys[i % 4 / 2], 'x');
        assert_true(node_heard(&n, dialed, &m, now));
        drain(now);
        assert_false(n.line.lost);
    }
    drain(now += NODE_REST_MS);
    welcome(dialed, 'a', now);
    assert_false(n.line.lost);
}

/* A CHALLENGE that was sent to the same id over a connection of the same number does not serve again: the nonce is another. */
static void test_a_challenge_of_before(void **state)
{
    (void)state;
    drain(1);
    open_to(1, 1);
    const struct message m = challenge_of(&n.config.key, 'a');
    node_release(&n);
    begin("key");
    n.config.seed[0] = 1;
    drain(1);
    open_to(1, 1);
    assert_true(node_heard(&n, 1, &m, 2));
    drain(2);
    assert_int_equal(last.kind, NODE_CLOSE);
}

/* Its HELLOs never repeat a nonce. */
static void test_fresh_nonces(void **state)
{
    uint8_t nonces[20][MESSAGE_NONCE_BYTES];
    int64_t now = 1;

    (void)state;
    for (int i = 0; i < 20; i++) {
        drain(now += NODE_REST_MS);
        open_to(dialed, now);
        memcpy(nonces[i], hello.nonce, sizeof(nonces[i]));
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(nonces[i], nonces[k], sizeof(nonces[i]));
        node_closed(&n, dialed, LINK_CLOSED, "it ended", now);
    }
}

/* A node whose ranks still run confirms the end at once: the host does not wait for its ranks. */
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
    assert_true(n.report.heard_end && !n.line.dirty); /* once */
    node_ranks_ended(&n, false);
    drain(4);
    assert_int_equal(n.stage, NODE_OVER);
    assert_int_equal(n.over.why, NODE_WHY_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lost_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_is_lost, setup_key, teardown),
        cmocka_unit_test_setup_teardown(test_a_leader_without_a_proof, setup_key, teardown),
        cmocka_unit_test_setup_teardown(test_a_challenge_of_before, setup_key, teardown),
        cmocka_unit_test_setup_teardown(test_fresh_nonces, setup_key, teardown),
        cmocka_unit_test_setup_teardown(test_a_mute_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_leader_that_ends_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_was_met, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_old_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_end_is_said_while_ranks_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
