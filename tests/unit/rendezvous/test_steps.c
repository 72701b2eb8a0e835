/* test_steps.c - the median and the slowest of ranks, in one part each or in nodes. */
#include "play.h"

#include "common/cleanup.h"
#include "rendezvous/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64 };

static struct steps rank_of(int64_t rank, int64_t own_us, int64_t wait_us)
{
    return (struct steps){.window = 1,
                          .ranks = 1,
                          .median_us = own_us,
                          .slow_us = own_us,
                          .slow_rank = rank,
                          .wait_us = wait_us};
}

static struct steps whole(const int64_t *own, int n, int64_t wait)
{
    struct steps part[MOST], ret = {.window = 7};

    for (int i = 0; i < n; i++)
        part[i] = rank_of(i, own[i], wait + own[n - 1] - own[i]);
    steps_merge(part, n, &ret);
    assert_int_equal(ret.window, 7);
    assert_int_equal(ret.ranks, n);
    return ret;
}

static void test_one_rank_each_is_exact(void **state)
{
    static const struct {
        int n;
        int64_t own[6];
        int64_t median, slow, rank;
    } cases[] = {
        {1, {5}, 5, 5, 0},
        {2, {5, 9}, 5, 9, 1}, /* with the other one */
        {2, {9, 5}, 5, 9, 0},
        {3, {9, 5, 7}, 7, 9, 0},
        {4, {1, 8, 3, 2}, 2, 8, 1},
        {5, {4, 4, 4, 4, 4}, 4, 4, 0},
        {6, {6, 5, 4, 3, 2, 1}, 3, 6, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct steps s = whole(cases[i].own, cases[i].n, 0);
        assert_int_equal(s.median_us, cases[i].median);
        assert_int_equal(s.slow_us, cases[i].slow);
        assert_int_equal(cases[i].own[s.slow_rank], cases[i].own[cases[i].rank]);
    }
}

/* Nodes of 4, 1 and 2 ranks: a median counts for all of its node. */
static void test_nodes_weigh_their_ranks(void **state)
{
    struct steps node[] = {
        {.window = 3, .ranks = 4, .median_us = 20, .slow_us = 25, .slow_rank = 2, .wait_us = 11},
        {.window = 5, .ranks = 1, .median_us = 10, .slow_us = 10, .slow_rank = 4, .wait_us = 12},
        {.window = 4, .ranks = 2, .median_us = 30, .slow_us = 31, .slow_rank = 6, .wait_us = 9},
    };
    struct steps s = {0};

    (void)state;
    steps_merge(node, 3, &s);
    assert_int_equal(s.ranks, 7);
    assert_int_equal(s.median_us, 20);
    assert_int_equal(s.slow_us, 31);
    assert_int_equal(s.slow_rank, 6);
    assert_int_equal(s.wait_us, 9);
}

/* A rank's own time that is a small part of the step makes no straggler. */
static void test_the_exchange_is_part_of_everybodys_step(void **state)
{
    static const int64_t own[] = {100, 140};
    struct steps s = whole(own, 2, 0);

    (void)state;
    assert_float_equal(steps_ratio(&s), 1.4, 1e-6);
    s = whole(own, 2, 900);
    assert_float_equal(steps_ratio(&s), 1.04, 1e-6);
    assert_float_equal(steps_ratio(&(struct steps){.slow_us = 5}), 1, 1e-6);
}

static void test_the_largest_numbers(void **state)
{
    struct steps part[MOST], s = {0};

    (void)state;
    for (int i = 0; i < MOST; i++) {
        part[i] = rank_of(STEPS_RANKS_MAX - 1, STEPS_US_MAX, STEPS_US_MAX);
        part[i].ranks = STEPS_RANKS_MAX;
    }
    steps_merge(part, MOST, &s);
    assert_int_equal(s.median_us, STEPS_US_MAX);
    assert_int_equal(s.ranks, (int64_t)MOST * STEPS_RANKS_MAX);
    assert_float_equal(steps_ratio(&s), 1, 1e-6);
}

static void tell(struct quorum *q, int64_t ticket, int64_t window, int64_t own_us, enum node_phase phase)
{
    static int64_t beat = 1 << 20;
    const struct meeting_node n = {.phase = phase,
                                   .round = q->state.round,
                                   .beat = ++beat,
                                   .nproc = 1,
                                   .wanted = -1,
                                   .steps = {window, window != 0, own_us, own_us, ticket, 0}};

    quorum_hear(q, ticket, &n, 30001);
}

/* A window of the run is a new one of every member. */
static void test_the_leader_waits_for_all(void **state)
{
    struct steps s = {0};
    struct quorum q;

    (void)state;
    play_begin(&q, &play_fixed_2, 2);
    assert_false(quorum_steps(&q, &s));
    tell(&q, 1, 4, 100, NODE_RUNNING);
    tell(&q, 2, 0, 0, NODE_RUNNING);
    assert_false(quorum_steps(&q, &s));
    tell(&q, 2, 9, 150, NODE_RUNNING);
    assert_true(quorum_steps(&q, &s));
    assert_int_equal(s.window, 1);
    assert_int_equal(s.ranks, 2);
    assert_int_equal(s.median_us, 100);
    assert_int_equal(s.slow_rank, 2);
    assert_false(quorum_steps(&q, &s));
    tell(&q, 1, 5, 100, NODE_RUNNING);
    assert_false(quorum_steps(&q, &s));
    tell(&q, 7, 1, 999, NODE_RUNNING); /* no member */
    tell(&q, 2, 10, 50, NODE_DONE);
    assert_false(quorum_steps(&q, &s));
    tell(&q, 2, 10, 50, NODE_RUNNING);
    assert_true(quorum_steps(&q, &s));
    assert_int_equal(s.window, 2);
    assert_int_equal(s.slow_rank, 1);
    quorum_release(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_each_is_exact),
        cmocka_unit_test(test_nodes_weigh_their_ranks),
        cmocka_unit_test(test_the_exchange_is_part_of_everybodys_step),
        cmocka_unit_test(test_the_largest_numbers),
        cmocka_unit_test(test_the_leader_waits_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
