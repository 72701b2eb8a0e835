/* test_quorum.c - who is in a round and how a run ends. */
#include "../seed.h"
#include "play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_a_run_that_goes_well(void **state)
{
    struct quorum q;

    (void)state;
    quorum_init(&q, &play_fixed_2, 0);
    assert_false(quorum_step(&q, 0));
    play_hear(&q, 1, NODE_JOINING, 90000);
    assert_false(quorum_step(&q, 90000));
    play_hear(&q, 2, NODE_JOINING, 90001);
    assert_true(quorum_step(&q, 90001));
    /* The host first; the address and port are its. */
    PLAY_EXPECT(&q, 2, 1);
    assert_string_equal(q.state.master_addr, "10.0.0.2");
    assert_int_equal(q.state.master_port, 1002);
    play_hear(&q, 1, NODE_DONE, 90002);
    assert_false(quorum_step(&q, 90002));
    play_hear(&q, 2, NODE_DONE, 90003);
    assert_true(quorum_step(&q, 90003));
    assert_int_equal(q.state.end, END_SUCCESS);
    assert_false(quorum_over(&q));
    q.slots[0].node.heard_end = 1;
    assert_false(quorum_over(&q));
    play_hear(&q, q.slots[1].ticket, NODE_LEAVING, 90004); /* it hears no more */
    assert_true(quorum_over(&q));
    assert_false(quorum_step(&q, 90005));
    quorum_release(&q);
}

static void test_last_call(void **state)
{
    const struct quorum_config c = play_elastic(2, 4);
    struct quorum q;

    (void)state;
    quorum_init(&q, &c, 0);
    play_all(&q, 2, NODE_JOINING, 100);
    assert_false(quorum_step(&q, 100));
    assert_int_equal(q.last_call_ms, 30100);
    assert_true(quorum_next_ms(&q, 30000) == 30100);
    for (int64_t now = 4000; now < 30000; now += 4000) {
        play_all(&q, now < 20000 ? 2 : 3, NODE_JOINING, now);
        assert_false(quorum_step(&q, now));
    }
    assert_true(quorum_step(&q, 30100));
    PLAY_EXPECT(&q, 2, 1, 3);
    assert_true(quorum_next_ms(&q, 30100) == 35100); /* heartbeats: the call is over */
    quorum_release(&q);
    /* It ends with the run as well. */
    quorum_init(&q, &c, 0);
    play_all(&q, 2, NODE_JOINING, 100);
    assert_false(quorum_step(&q, 100));
    play_hear(&q, 2, NODE_LEAVING, 200);
    assert_true(quorum_step(&q, 200));
    assert_int_equal(q.state.end, END_SIGNAL);
    assert_true(quorum_next_ms(&q, 40000) == 45000);
    quorum_release(&q);
    /* Full: nothing is waited for. One that has no place waits. */
    quorum_init(&q, &c, 0);
    play_all(&q, 5, NODE_JOINING, 100);
    assert_true(quorum_step(&q, 100));
    PLAY_EXPECT(&q, 2, 1, 3, 4);
    play_hear(&q, 5, NODE_JOINING, 101);
    assert_false(quorum_step(&q, 101));
    quorum_release(&q);
    /* Who came first has a place, whatever its address, and the host. */
    const struct quorum_config two = play_elastic(1, 2);
    quorum_init(&q, &two, 0);
    for (int64_t t = 4; t > 1; t--)
        play_hear(&q, t, NODE_JOINING, 100);
    assert_true(quorum_step(&q, 100));
    PLAY_EXPECT(&q, 2, 4);
    quorum_release(&q);
}

static void test_too_few_in_time(void **state)
{
    struct quorum q;

    (void)state;
    quorum_init(&q, &play_fixed_2, 0);
    for (int64_t now = 0; now < 600000; now += 5000) {
        play_hear(&q, 1, NODE_JOINING, now);
        assert_false(quorum_step(&q, now));
    }
    assert_true(quorum_step(&q, 600000));
    assert_int_equal(q.state.end, END_TIMEOUT);
    assert_non_null(strstr(q.state.why, "1 of at least 2 nodes came within 600 s"));
    quorum_release(&q);
}

/* Who has come, for those who wait: not before it takes long, and not more often. */
static void test_who_has_come_is_told(void **state)
{
    struct quorum q;
    const struct quorum_config c = play_elastic(3, 4);

    (void)state;
    quorum_init(&q, &c, 0);
    assert_int_equal(q.state.left_ms, 600000);
    play_all(&q, 1, NODE_JOINING, 100);
    assert_false(quorum_step(&q, 100) || quorum_count_joined(&q, 100) || quorum_count_joined(&q, 4999));
    const int64_t version = q.state.version;
    assert_true(quorum_count_joined(&q, 5000));
    assert_true(q.state.version == version + 1 && q.state.here == 1 && q.state.left_ms == 595000);
    assert_string_equal(q.state.missing, ""); /* nobody has a number yet */
    play_all(&q, 2, NODE_JOINING, 5001);
    assert_false(quorum_count_joined(&q, 9999));
    assert_true(quorum_count_joined(&q, 10000));
    assert_int_equal(q.state.here, 2);
    play_all(&q, 2, NODE_JOINING, 14000);
    assert_false(quorum_count_joined(&q, 19000)); /* no news */
    for (int64_t now = 14000; now <= 29001; now += 5000) {
        play_hear(&q, 1, NODE_JOINING, now);
        assert_false(quorum_step(&q, now)); /* node 2 has fallen silent */
    }
    assert_true(quorum_count_joined(&q, 29000));
    assert_int_equal(q.state.here, 1);
    play_all(&q, 4, NODE_JOINING, 29002);
    assert_true(quorum_step(&q, 29002));
    assert_false(quorum_count_joined(&q, 90000)); /* the round runs */
    /* The next round's count begins again. */
    play_failure(&q, 1, 7, 0, 90000);
    assert_true(quorum_step(&q, 90000));
    assert_true(q.state.here == 0 && q.state.left_ms == 600000 && !quorum_count_joined(&q, 94999));
    quorum_release(&q);
}

static void join_as(struct quorum *q, int64_t ticket, int64_t rank)
{
    const struct meeting_node n = {.phase = NODE_JOINING, .beat = ticket, .nproc = 1, .wanted = rank};

    quorum_hear(q, ticket, &n, 0);
}

/* Nodes of one role need not be neighbours; all receive the role's first node. */
static void test_roles(void **state)
{
    static const char *const roles[] = {"trainer", "server", "trainer", "", "server", "trainer2"};
    static const int64_t want[] = {0, 1, 0, 3, 1, 5};
    struct quorum_config c = play_fixed_2;
    struct quorum q;

    (void)state;
    c.fixed_ranks = true;
    c.min = c.max = ARRAY_LEN(roles);
    quorum_init(&q, &c, 0);
    for (int64_t i = 0; i < c.max; i++) {
        struct meeting_node n = {.phase = NODE_JOINING, .beat = 1, .nproc = 1, .wanted = c.max - 1 - i};
        snprintf(n.role, sizeof(n.role), "%s", roles[n.wanted]);
        quorum_hear(&q, i + 1, &n, 0);
    }
    assert_true(quorum_step(&q, 1));
    assert_int_equal(q.state.n, ARRAY_LEN(roles));
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        assert_int_equal(q.state.members[i].role, want[i]);
    quorum_release(&q);
}

static void test_missing_ranks_are_named(void **state)
{
    struct quorum_config c = play_fixed_2;
    struct quorum q;

    (void)state;
    c.fixed_ranks = true;
    c.min = c.max = 9;
    quorum_init(&q, &c, 0);
    join_as(&q, 1, 0);
    join_as(&q, 2, 2);
    join_as(&q, 3, 8);
    assert_true(quorum_count_joined(&q, QUORUM_COUNT_MS));
    assert_string_equal(q.state.missing, "1, 3..7");
    assert_int_equal(q.state.here, 3);
    join_as(&q, 4, 1);
    assert_true(quorum_count_joined(&q, 2 * QUORUM_COUNT_MS));
    assert_string_equal(q.state.missing, "3..7");
    join_as(&q, 5, 5);
    assert_true(quorum_count_joined(&q, 3 * QUORUM_COUNT_MS));
    assert_string_equal(q.state.missing, "3..4, 6..7");
    quorum_release(&q);
    /* As many as there is room for. */
    c.min = c.max = MEETING_NODES_MAX;
    quorum_init(&q, &c, 0);
    for (int64_t i = 0; i < MEETING_NODES_MAX; i += 2)
        join_as(&q, i + 1, i);
    assert_true(quorum_count_joined(&q, QUORUM_COUNT_MS));
    const size_t len = strlen(q.state.missing);
    assert_true(len < MEETING_MISSING_BYTES && len > MEETING_MISSING_BYTES - 16);
    assert_ptr_equal(strstr(q.state.missing, "1, 3, 5, 7, "), q.state.missing);
    assert_string_equal(q.state.missing + len - 5, ", ...");
    quorum_release(&q);
}

static void test_failures_use_restarts_everywhere(void **state)
{
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    for (int i = 1; i <= 2; i++) {
        play_failure(&q, i, 7, 0, 40000);
        assert_true(quorum_step(&q, 40000));
        assert_int_equal(q.state.stage, STAGE_FORMING);
        assert_int_equal(q.state.round, i);
        assert_int_equal(q.state.restarts, i);
        assert_non_null(strstr(q.state.why, "exit code 7"));
        play_all(&q, 2, NODE_JOINING, 40000);
        assert_true(quorum_step(&q, 40000));
        PLAY_EXPECT(&q, 2, 1);
    }
    play_failure(&q, 1, 3, 0, 40001);
    assert_true(quorum_step(&q, 40001));
    assert_int_equal(q.state.end, END_FAILED);
    assert_int_equal(q.state.blame, 1);
    assert_int_equal(q.state.cause.status, 3 << 8);
    quorum_release(&q);
}

static void test_a_wrong_usage_uses_no_restart(void **state)
{
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    play_failure(&q, 1, 2, 0, 40000);
    assert_true(quorum_step(&q, 40000));
    assert_int_equal(q.state.end, END_FAILED);
    assert_int_equal(q.state.restarts, 0);
    assert_int_equal(q.state.cause.status, 2 << 8);
    quorum_release(&q);
}

static void test_root_cause_is_awaited(void **state)
{
    struct quorum_config c = play_fixed_2;
    struct quorum q;

    (void)state;
    c.restarts = 0;
    play_begin(&q, &c, 2);
    play_failure(&q, 1, 140, 2, 40000);
    assert_int_equal(q.state.asks, 0);
    assert_true(quorum_step(&q, 40000));
    assert_int_equal(q.state.asks, 1); /* whether another node has a rank that has raised */
    assert_int_equal(q.state.stage, STAGE_RUNNING);
    assert_false(quorum_step(&q, 40000));
    assert_true(quorum_next_ms(&q, 40000) == 40000 + QUORUM_ROOT_CAUSE_MS);
    play_failure(&q, 2, 9, 0, 40500);
    assert_true(quorum_step(&q, 40500));
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
    play_begin(&q, &c, 2);
    play_hear(&q, 1, NODE_RUNNING, 39999);
    play_failure(&q, 2, 140, 2, 40000);
    assert_true(quorum_step(&q, 40000));
    assert_false(quorum_step(&q, 40999));
    assert_true(quorum_step(&q, 41000));
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
    /* All have reported: of unsure failures the least wins, without a wait. */
    play_begin(&q, &c, 2);
    play_failure(&q, 2, 1, 2, 40000);
    assert_true(quorum_step(&q, 40000));
    play_failure(&q, 1, 134, 1, 40001);
    assert_true(quorum_step(&q, 40001));
    assert_int_equal(q.state.stage, STAGE_ENDED);
    assert_int_equal(q.state.blame, 1);
    quorum_release(&q);
    /* The next round is not affected. */
    c.restarts = 1;
    play_begin(&q, &c, 2);
    play_hear(&q, 1, NODE_RUNNING, 39999);
    play_failure(&q, 2, 140, 2, 40000);
    assert_true(quorum_step(&q, 40000));
    assert_true(quorum_step(&q, 41000));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_int_equal(q.state.asks, 0);
    c.restarts = 0;
    quorum_release(&q);
    /* Of two sure ones the first. */
    play_begin(&q, &c, 2);
    play_failure(&q, 2, 4, 0, 40000);
    play_failure(&q, 1, 5, 0, 40000);
    assert_true(quorum_step(&q, 40000));
    assert_int_equal(q.state.blame, 2);
    quorum_release(&q);
}

static void test_a_node_comes(void **state)
{
    const struct quorum_config c = play_elastic(1, 3);
    struct quorum q;

    (void)state;
    play_begin(&q, &c, 2);
    play_hear(&q, 3, NODE_JOINING, 31000);
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    assert_int_equal(q.state.restarts, 0);
    play_hear(&q, 3, NODE_JOINING, 31001);
    assert_false(quorum_step(&q, 31001));
    play_all(&q, 2, NODE_JOINING, 31002);
    assert_true(quorum_step(&q, 31002));
    PLAY_EXPECT(&q, 2, 1, 3);
    quorum_release(&q);
    /* Not when the run is about to end. */
    play_begin(&q, &c, 2);
    play_hear(&q, 1, NODE_DONE, 31000);
    play_hear(&q, 3, NODE_JOINING, 31000);
    assert_false(quorum_step(&q, 31000));
    quorum_release(&q);
}

static void test_a_node_is_told_to_go(void **state)
{
    struct quorum_config c = play_elastic(2, 3);
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    play_hear(&q, 1, NODE_LEAVING, 31000);
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.end, END_SIGNAL);
    assert_int_equal(q.state.blame, 1);
    assert_non_null(strstr(q.state.why, "signal 15"));
    quorum_release(&q);
    play_begin(&q, &c, 3);
    play_hear(&q, 1, NODE_LEAVING, 31000);
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.stage, STAGE_FORMING);
    play_hear(&q, 1, NODE_LEAVING, 31000);
    play_hear(&q, 2, NODE_JOINING, 31000);
    play_hear(&q, 3, NODE_JOINING, 31000);
    assert_true(quorum_step(&q, 31000));
    PLAY_EXPECT(&q, 2, 3);
    play_hear(&q, 3, NODE_LEAVING, 31000); /* below the fewest */
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.end, END_SIGNAL);
    quorum_release(&q);
    play_begin(&q, &c, 3);
    play_hear(&q, 2, NODE_LEAVING, 31000); /* the host takes the leader with it */
    assert_true(quorum_step(&q, 31000));
    assert_int_equal(q.state.end, END_SIGNAL);
    quorum_release(&q);
}

/* Node `id` of a drawn run: where it stands in the order, its address, and when it came. */
struct drawn {
    int order, address;
    int64_t ticket;
};

static void join_drawn(struct quorum *q, const struct drawn *d, bool leads, int64_t now)
{
    struct meeting_node n = {.phase = NODE_JOINING,
                             .round = q->state.round + (q->state.stage == STAGE_RUNNING),
                             .beat = now,
                             .nproc = 1,
                             .wanted = d->order,
                             .leaders = leads};

    snprintf(n.addr, sizeof(n.addr), "10.0.0.%d", d->address);
    quorum_hear(q, d->ticket, &n, now);
}

/* As text, "10.0.0.10" is before "10.0.0.9". */
static bool address_before(int a, int b)
{
    char x[12], y[12];

    snprintf(x, sizeof(x), "%d", a);
    snprintf(y, sizeof(y), "%d", b);
    return strcmp(x, y) < 0;
}

static bool drawn_before(const struct drawn *a, const struct drawn *b)
{
    if ((a->order < 0) != (b->order < 0))
        return b->order < 0;
    if (a->order != b->order)
        return a->order < b->order;
    return a->address != b->address ? address_before(a->address, b->address) : a->ticket < b->ticket;
}

static void expect_drawn(const struct quorum *q, struct drawn *d, int n, int leader)
{
    struct drawn want[16] = {d[leader]};
    int k = 1;

    for (int i = 0; i < n; i++)
        for (int at = i == leader ? 0 : k++; at > 0; at--) {
            const bool moves = at > 1 && drawn_before(&d[i], &want[at - 1]);
            want[at] = moves ? want[at - 1] : d[i];
            at = moves ? at : 1;
        }
    assert_int_equal(q->state.stage, STAGE_RUNNING);
    assert_int_equal(q->state.n, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(q->state.members[i].ticket, want[i].ticket);
}

/* However nodes come: the leader's first, then by the order that they were given, by address, by arrival. Some orders are
 * missing, or claimed twice. A node that is lost leaves no gap. */
static void test_order_of_node_ranks(void **state)
{
    uint64_t rnd = seed_of_run();

    (void)state;
    for (int run = 0; run < 400; run++) {
        const int n = 2 + run % 15, kind = run / 15 % 3; /* an order; none; some */
        struct quorum_config c = play_elastic(1, n);
        struct drawn d[16];
        struct quorum q;
        for (int i = 0; i < n; i++)
            d[i] = (struct drawn){.ticket = i + 1};
        for (int i = 0; i < n; i++) {
            rnd = rnd * 6364136223846793005u + 1442695040888963407u;
            const int other = (int)(rnd >> 33) % (i + 1);
            d[i].order = d[other].order, d[i].address = d[other].address;
            d[other].order = d[other].address = i;
        }
        for (int i = 0; i < n && kind; i++) {
            rnd = rnd * 6364136223846793005u + 1442695040888963407u;
            d[i].order = kind == 1 || rnd >> 63 ? -1 : d[i].order / 2;
            d[i].address = kind == 2 && rnd >> 62 & 1 ? 7 : d[i].address;
        }
        const int leader = (int)(rnd >> 33) % n;
        quorum_init(&q, &c, 0);
        for (int i = 0; i < n; i++)
            join_drawn(&q, &d[i], i == leader, 1);
        assert_true(quorum_step(&q, 1));
        expect_drawn(&q, d, n, leader);
        const int gone = (leader + 1) % n;
        quorum_disconnected(&q, d[gone].ticket, 2);
        assert_true(quorum_step(&q, 2 + QUORUM_RECONNECT_MS));
        d[gone] = d[n - 1];
        for (int i = 0; i < n - 1; i++)
            join_drawn(&q, &d[i], d[i].ticket == leader + 1, 2);
        (void)quorum_step(&q, 3 + QUORUM_RECONNECT_MS);
        for (int i = 0; i < n - 1; i++)
            join_drawn(&q, &d[i], d[i].ticket == leader + 1, 3 + c.last_call_ms);
        (void)quorum_step(&q, 3 + QUORUM_RECONNECT_MS + c.last_call_ms);
        expect_drawn(&q, d, n - 1, leader == n - 1 ? gone : leader);
        quorum_release(&q);
    }
}

static void numbered(struct quorum *q, int64_t ticket, int64_t rank)
{
    struct meeting_node n = {.phase = NODE_JOINING,
                             .round = q->state.round,
                             .beat = 100 + ticket,
                             .nproc = ticket + 1,
                             .wanted = rank,
                             .leaders = rank == 0};
    quorum_hear(q, ticket, &n, 10);
}

static void test_fixed_ranks(void **state)
{
    struct quorum_config c = play_elastic(3, 3);
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
    PLAY_EXPECT(&q, 6, 3, 1);
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
    play_begin(&q, &play_fixed_2, 2);
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
        cmocka_unit_test(test_who_has_come_is_told),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_missing_ranks_are_named),
        cmocka_unit_test(test_a_wrong_usage_uses_no_restart),
        cmocka_unit_test(test_root_cause_is_awaited),
        cmocka_unit_test(test_a_node_comes),
        cmocka_unit_test(test_a_node_is_told_to_go),
        cmocka_unit_test(test_fixed_ranks),
        cmocka_unit_test(test_order_of_node_ranks),
        cmocka_unit_test(test_a_launcher_that_cannot_start_its_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
