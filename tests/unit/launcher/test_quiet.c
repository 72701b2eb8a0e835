/* test_quiet.c - the clock of signs of life, by a simulated clock; with the meeting's leader, a run of three nodes. */
#include "common/cleanup.h"
#include "launcher/quiet.h"
#include "rendezvous/quorum.h"
#include "test.h"

#include <string.h>

enum { NODES = 3, TRACES = 1000, SIGNS = 20 };

static void test_the_limit(void **state)
{
    struct quiet q;

    (void)state;
    quiet_begin(&q, 30000, 5000);
    assert_int_equal(quiet_due_ms(&q), 5000 + QUIET_LOOK_MS);
    for (int64_t now = 6000; now < 35000; now += 1000)
        assert_false(quiet_look(&q, now));
    assert_int_equal(quiet_due_ms(&q), 35000);
    assert_false(quiet_look(&q, 34999));
    assert_true(quiet_look(&q, 35000));
    quiet_sign(&q, 34000);
    assert_false(quiet_look(&q, 35001));
    quiet_sign(&q, 33000); /* old news */
    assert_false(quiet_look(&q, 36000));
    assert_int_equal(quiet_due_ms(&q), 36000 + QUIET_LOOK_MS);
    quiet_begin(&q, 1000, 0);
    assert_int_equal(quiet_due_ms(&q), 250);
}

/* A launcher that stood still saw nothing meanwhile. */
static void test_a_launcher_that_stood_still(void **state)
{
    struct quiet q;
    int64_t now;

    (void)state;
    quiet_begin(&q, 30000, 0);
    for (now = 1000; now <= 10000; now += 1000)
        assert_false(quiet_look(&q, now));
    now = 10000 + 3600000;
    assert_false(quiet_look(&q, now));
    for (int64_t later = 1000; later < 20000; later += 1000)
        assert_false(quiet_look(&q, now + later));
    assert_true(quiet_look(&q, now + 20000));
    /* On a machine on which it is always late, it still reports in the end. */
    quiet_begin(&q, 30000, 0);
    for (now = 0; now < 30000; now += QUIET_LATE_MS)
        assert_false(quiet_look(&q, now));
    assert_true(quiet_look(&q, now));
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

struct play {
    struct quorum q;
    struct quiet clocks[NODES];
    bool said[NODES];
    int64_t beat;
};

static void word(struct play *p, int node, enum node_phase phase, int64_t now)
{
    const struct meeting_node n = {.phase = phase,
                                   .round = p->q.state.round,
                                   .beat = ++p->beat,
                                   .nproc = 1,
                                   .wanted = -1,
                                   .quiet = p->said[node],
                                   .leaders = node == 0};

    quorum_hear(&p->q, node + 1, &n, now);
}

static void begin(struct play *p, int64_t limit, int64_t now)
{
    const struct quorum_config c = {.min = NODES,
                                    .max = NODES,
                                    .join_ms = 1 << 30,
                                    .keep_alive_ms = 5000,
                                    .keep_alive_attempts = 1000000};

    *p = (struct play){.beat = 0};
    quorum_init(&p->q, &c, now);
    for (int i = 0; i < NODES; i++)
        word(p, i, NODE_JOINING, now);
    assert_true(quorum_step(&p->q, now));
    for (int i = 0; i < NODES; i++) {
        quiet_begin(&p->clocks[i], limit, now);
        word(p, i, NODE_RUNNING, now);
    }
}

/* Each node looks when its clock is due, up to `late` later; true when the leader decides that the round hangs. */
static bool pass(struct play *p, uint32_t *seed, uint32_t late, int64_t *now, int64_t until)
{
    while (*now < until) {
        int64_t next = until;
        for (int i = 0; i < NODES; i++) {
            const int64_t left = quiet_due_ms(&p->clocks[i]) - *now,
                          due = *now + (left > 0 ? left : 0) + 1 + draw(seed, late);
            next = due < next ? due : next;
        }
        *now = next;
        for (int i = 0; i < NODES; i++) {
            const bool quiet = quiet_look(&p->clocks[i], *now);
            if (quiet != p->said[i]) {
                p->said[i] = quiet;
                word(p, i, NODE_RUNNING, *now);
            }
        }
        if (quorum_step(&p->q, *now) && p->q.state.hung)
            return true;
    }
    return false;
}

/* Signs come from any node, mostly from the first (rank 0 prints), with pauses up to half the limit: no alarm. Then none comes,
 * and it is reported in time. */
static void test_traces(void **state)
{
    struct play p;
    uint32_t seed = 7;
    int alarms = 0;

    (void)state;
    for (int t = 0; t < TRACES; t++) {
        const int64_t limit = 1000 * (1 + draw(&seed, 300));
        const uint32_t late = 1 + draw(&seed, limit < 8000 ? (uint32_t)limit / 8 : 1000);
        int64_t now = draw(&seed, 1000000), last;
        begin(&p, limit, now);
        last = now;
        for (int i = 0; i < SIGNS; i++) {
            alarms += pass(&p, &seed, late, &now, now + draw(&seed, (uint32_t)limit / 2 + 1));
            quiet_sign(&p.clocks[draw(&seed, 4) ? 0 : draw(&seed, NODES)], now);
            last = now;
        }
        assert_true(pass(&p, &seed, late, &now, last + 2 * limit + 2000));
        assert_true(now >= last + limit && now <= last + limit + QUIET_LOOK_MS + 1 + late);
        quorum_release(&p.q);
    }
    assert_int_equal(alarms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_limit),
        cmocka_unit_test(test_a_launcher_that_stood_still),
        cmocka_unit_test(test_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
