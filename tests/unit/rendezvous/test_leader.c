/* test_leader.c - the leader's connections: who is let in, who is displaced, whose word counts. */
#include "rendezvous/leader.h"
#include "rendezvous/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct leader_config config = {.run_id = "run",
                                            .id = "leader",
                                            .quorum = {.min = 1,
                                                       .max = 1,
                                                       .join_ms = 600000,
                                                       .last_call_ms = 1000,
                                                       .keep_alive_ms = 5000,
                                                       .keep_alive_attempts = 3}};

static struct leader l;

static int setup(void **state)
{
    (void)state;
    leader_init(&l, &config, 0);
    return 0;
}

/* With a key. */
static int setup_key(void **state)
{
    struct leader_config c = config;

    (void)state;
    c.key = (struct jobkey){.has = true, .bytes = "key"};
    memcpy(c.seed, "leader", 7);
    leader_init(&l, &c, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    leader_release(&l);
    return 0;
}

/* The next thing that the leader does, which has to be of this kind at this link. */
static struct message *expect(int kind, int link, enum message_type type)
{
    static struct leader_action a;

    assert_true(leader_act(&l, &a));
    assert_int_equal(a.kind, kind);
    assert_int_equal(a.link, link);
    if (kind == LEADER_SEND)
        assert_int_equal(a.message.type, type);
    return &a.message;
}

static void expect_nothing(void)
{
    struct leader_action a;

    assert_false(leader_act(&l, &a));
}

static int hello(const char *id, uint32_t number, const char *run, int64_t version, int64_t now)
{
    struct message m = {.type = MESSAGE_HELLO, .hello = {.version = version, .number = number}};
    const int link = leader_opened(&l, false, now);

    snprintf((char *)m.hello.id, sizeof(m.hello.id), "%s", id);
    snprintf(m.hello.run_id, sizeof(m.hello.run_id), "%s", run);
    assert_true(leader_heard(&l, link, &m, now));
    leader_decide(&l, now);
    return link;
}

static int welcome(const char *id, uint32_t number, int64_t now)
{
    const struct message answer = {.type = MESSAGE_ANSWER};
    const int link = hello(id, number, "run", MESSAGE_VERSION, now);

    expect(LEADER_SEND, link, MESSAGE_CHALLENGE);
    assert_true(leader_heard(&l, link, &answer, now));
    leader_decide(&l, now);
    expect(LEADER_SEND, link, MESSAGE_WELCOME);
    return link;
}

static void say(int link, int64_t beat, enum node_phase phase, int64_t version, int64_t now)
{
    const struct message m = {
        .type = MESSAGE_NODE,
        .node = {.phase = phase, .beat = beat, .nproc = 1, .wanted = -1, .version = version}};

    assert_true(leader_heard(&l, link, &m, now));
    leader_decide(&l, now);
}

static void test_who_is_refused(void **state)
{
    (void)state;
    const int other = hello("a", 1, "another run", MESSAGE_VERSION, 1);
    assert_int_equal(expect(LEADER_SEND, other, MESSAGE_REFUSED)->refusal, REFUSED_RUN);
    expect(LEADER_CLOSE, other, 0);
    const int newer = hello("a", 1, "run", MESSAGE_VERSION + 1, 1);
    assert_int_equal(expect(LEADER_SEND, newer, MESSAGE_REFUSED)->refusal, REFUSED_VERSION);
    expect(LEADER_CLOSE, newer, 0);
    expect_nothing();
    assert_int_equal(l.open, 0);
    /* What does not belong there ends the connection. */
    const struct message node = {.type = MESSAGE_NODE};
    const int early = leader_opened(&l, false, 1);
    assert_false(leader_heard(&l, early, &node, 1));
    leader_closed(&l, early, LINK_CLOSED, 1);
    assert_int_equal(l.open, 0);
}

/* A node's connection, up to the leader's CHALLENGE. */
struct caller {
    struct message_hello hello;
    struct message_challenge challenge;
    int link;
};

static struct caller call(const struct jobkey *key, const char *id, uint32_t number, const char *seed)
{
    struct message m = {.type = MESSAGE_HELLO};
    struct node_config n = {.run_id = "run", .key = *key};

    memcpy(n.id, id, strlen(id));
    memcpy(n.seed, seed, strlen(seed));
    node_hello(&n, number, &m.hello);
    struct caller c = {.hello = m.hello, .link = leader_opened(&l, false, 1)};
    assert_true(leader_heard(&l, c.link, &m, 1));
    leader_decide(&l, 1);
    if (l.links[c.link].at == LINK_GREETED)
        c.challenge = expect(LEADER_SEND, c.link, MESSAGE_CHALLENGE)->challenge;
    return c;
}

/* The node's proof. */
static const uint8_t *prove(const struct jobkey *key, const struct caller *c)
{
    static uint8_t proof[MESSAGE_ANSWER_BYTES];

    message_prove(key, MESSAGE_ANSWER, &c->hello, &c->challenge, proof);
    return proof;
}

static bool leader_proves(const struct jobkey *key, const struct caller *c)
{
    return message_proved(key, MESSAGE_CHALLENGE, &c->hello, &c->challenge, c->challenge.answer);
}

/* Whether the leader takes this answer; else it closes. */
static bool takes(const struct caller *c, const uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    struct message m = {.type = MESSAGE_ANSWER};
    struct leader_action a;

    memcpy(m.answer, proof, sizeof(m.answer));
    assert_true(leader_heard(&l, c->link, &m, 1));
    leader_decide(&l, 1);
    if (l.links[c->link].ticket) {
        expect(LEADER_SEND, c->link, MESSAGE_WELCOME);
        expect(LEADER_SEND, c->link, MESSAGE_STATE);
        return true;
    }
    assert_int_equal(expect(LEADER_SEND, c->link, MESSAGE_REFUSED)->refusal, REFUSED_AUTH);
    assert_true(leader_act(&l, &a));
    assert_int_equal(a.kind, LEADER_CLOSE);
    return false;
}

static void test_who_has_the_key(void **state)
{
    const struct jobkey good = {.has = true, .bytes = "key"}, bad = {.has = true, .bytes = "kez"};
    const uint8_t nothing[MESSAGE_ANSWER_BYTES] = {0};
    uint8_t sniffed[MESSAGE_ANSWER_BYTES];

    (void)state;
    struct caller c = call(&good, "a", 1, "one");
    assert_true(leader_proves(&good, &c));
    assert_false(leader_proves(&bad, &c));
    memcpy(sniffed, prove(&good, &c), sizeof(sniffed));
    assert_true(takes(&c, sniffed));
    /* The same words again, byte for byte. */
    c = call(&good, "a", 1, "one");
    assert_false(takes(&c, sniffed));
    /* The leader's own proof, sent back to it. */
    c = call(&good, "b", 1, "two");
    assert_false(takes(&c, c.challenge.answer));
    /* Another key, none, and a proof of another id, connection, run or leader. */
    c = call(&bad, "b", 1, "two");
    assert_false(takes(&c, prove(&bad, &c)));
    c = call(&good, "b", 1, "two");
    assert_false(takes(&c, nothing));
    for (int i = 0; i < 4; i++) {
        c = call(&good, "b", 1, "two");
        c.hello.id[0] ^= i == 0;
        c.hello.number += i == 1;
        c.hello.run_id[2] = i == 2 ? 0 : 'n';
        c.challenge.leader[0] ^= i == 3;
        assert_false(takes(&c, prove(&good, &c)));
    }
    assert_int_equal(l.n_nodes, 1);
    assert_int_equal(l.open, 1);
}

/* Time makes them late. Who was displaced is closed without a word. */
static void test_strangers(void **state)
{
    int64_t came_ms;
    bool greeted;

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(leader_opened(&l, false, 5 + i), i);
    assert_true(leader_unauthenticated(&l, 3, &greeted, &came_ms));
    assert_false(greeted);
    assert_int_equal(came_ms, 8);
    leader_displace(&l, 0);
    assert_false(leader_unauthenticated(&l, 0, &greeted, &came_ms));
    leader_decide(&l, 300);
    expect(LEADER_CLOSE, 0, 0);
    expect_nothing();
    leader_decide(&l, 5 + LEADER_GREET_MS);
    expect_nothing();
    leader_decide(&l, 24 + LEADER_GREET_MS);
    for (int i = 1; i < 20; i++)
        expect(LEADER_CLOSE, i, 0);
    assert_int_equal(l.open, 0);
    const int link = hello("a", 1, "run", MESSAGE_VERSION, 42000);
    assert_true(leader_unauthenticated(&l, link, &greeted, &came_ms) && greeted);
    expect(LEADER_SEND, link, MESSAGE_CHALLENGE);
    assert_false(leader_unauthenticated(&l, welcome("b", 1, 42000), &greeted, &came_ms));
}

static void test_the_newest_connection_counts(void **state)
{
    (void)state;
    const int first = welcome("a", 1, 1);
    expect(LEADER_SEND, first, MESSAGE_STATE);
    say(first, 1, NODE_JOINING, 1, 2);
    expect(LEADER_SEND, first, MESSAGE_HEARD);
    expect(LEADER_SEND, first, MESSAGE_STATE);
    assert_int_equal(l.quorum.state.stage, STAGE_RUNNING);
    const int second = welcome("a", 2, 3);
    expect_nothing(); /* it is sent one after its own message */
    say(second, 3, NODE_RUNNING, 2, 4);
    assert_int_equal(expect(LEADER_SEND, second, MESSAGE_HEARD)->beat, 3);
    expect(LEADER_SEND, second, MESSAGE_STATE);
    say(first, 2, NODE_JOINING, 1, 5); /* late */
    expect_nothing();
    say(second, 3, NODE_JOINING, 1, 5); /* not new */
    expect_nothing();
    assert_int_equal(l.quorum.slots[0].node.phase, NODE_RUNNING);
    leader_closed(&l, first, LINK_CLOSED, 6);
    assert_false(l.quorum.slots[0].disconnected);
    leader_closed(&l, second, LINK_CLOSED, 7);
    assert_true(l.quorum.slots[0].disconnected);
    assert_int_equal(l.n_nodes, 1);
}

/* It is always one state behind, since its words cross the leader's. */
static void test_who_is_behind(void **state)
{
    struct leader_action a;

    (void)state;
    const int link = welcome("a", 1, 1);
    expect(LEADER_SEND, link, MESSAGE_STATE);
    say(link, 1, NODE_JOINING, 1, 2);
    for (int64_t beat = 2; beat < 20; beat++) {
        while (leader_act(&l, &a))
            ;
        l.quorum.state.version++;
        leader_decide(&l, beat * 2000);
        while (leader_act(&l, &a))
            ;
        say(link, beat, NODE_RUNNING, l.quorum.state.version - 1, beat * 2000);
    }
    assert_false(l.quorum.slots[0].gone);
}

/* What it is sent is lost on the way, however often it connects. */
static void test_who_takes_nothing_over_many(void **state)
{
    struct leader_action a;
    int64_t now = 2, beat = 0;

    (void)state;
    for (uint32_t number = 1; now < 60000 && !(l.quorum.n && l.quorum.slots[0].gone); number++) {
        const int link = welcome("a", number, now);
        for (int i = 0; i < 2; i++, now += 2000) {
            say(link, ++beat, NODE_JOINING, 1, now);
            while (leader_act(&l, &a))
                ;
        }
    }
    assert_in_range(now, 15000, 25000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_has_the_key, setup_key, teardown),
        cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_newest_connection_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_is_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_takes_nothing_over_many, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
