/* test_straggler.c - which rank is reported as slow, from when on, and which never is. */
#include "common/cleanup.h"
#include "launcher/straggler.h"
#include "test.h"

#include <string.h>

enum { RANKS = 3, FIRST = 4 };

static struct rank_slot slots[RANKS];

struct node {
    struct arena arena;
    struct straggler s;
};

static void begin(struct node *n, int ranks)
{
    *n = (struct node){0};
    memset(slots, 0, sizeof(slots));
    straggler_init(&n->s, ranks, &n->arena);
    straggler_begin(&n->s, FIRST);
}

static void end(struct node *n)
{
    arena_release(&n->arena);
}

/* Each rank makes `steps` steps of its own time; they wait for the slowest, and everybody 100 us for the exchange. */
static bool make_steps(struct straggler *s, uint64_t steps, const int64_t *own_us)
{
    int64_t most = 0;

    for (int i = 0; i < s->n; i++)
        most = own_us[i] > most ? own_us[i] : most;
    for (int i = 0; i < s->n; i++) {
        slots[i].step += steps;
        slots[i].step_us += steps * (uint64_t)own_us[i];
        slots[i].wait_us += steps * (uint64_t)(most - own_us[i] + 100);
    }
    return straggler_measure(s, slots);
}

static void window(struct straggler *s, const int64_t *own_us)
{
    assert_true(make_steps(s, STRAGGLER_STEPS, own_us));
    straggler_judge(s, &s->steps);
}

static void test_a_slow_rank_is_named_for_as_long_as_it_is_slow(void **state)
{
    static const int64_t slow[RANKS] = {1000, 1500, 900}, fair[RANKS] = {1050, 1000, 900};
    struct node n;

    (void)state;
    begin(&n, RANKS);
    for (int i = 1; i < STRAGGLER_WINDOWS; i++) {
        window(&n.s, slow);
        assert_int_equal(n.s.rank, -1);
    }
    window(&n.s, slow);
    assert_int_equal(n.s.rank, FIRST + 1);
    assert_float_equal(n.s.ratio, 1600.0 / 1100, 1e-6);
    for (int i = 0; i < 100; i++)
        window(&n.s, slow);
    for (int i = 0; i < STRAGGLER_WINDOWS - STRAGGLER_MOST; i++) {
        window(&n.s, fair);
        assert_int_equal(n.s.rank, FIRST + 1);
    }
    window(&n.s, fair);
    assert_int_equal(n.s.rank, -1);
    end(&n);
}

static uint32_t draw(uint32_t *z)
{
    *z = *z * 1664525u + 1013904223u;
    return *z >> 8;
}

/* A pause, however long, is one window's affair, and so is one in every third; nor are two that take turns at being slow, or one at
 * the bound. */
static void test_what_is_none(void **state)
{
    static const int64_t cases[][2][2] = {/* every third window, the others */
                                          {{1000, 60 * 1000 * 1000}, {1000, 1020}},
                                          {{1000, 2000}, {2000, 1000}},
                                          {{900, 1200}, {900, 1200}}};
    static const int64_t above[2] = {900, 1201};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node n;
        begin(&n, 2);
        for (int k = 0; k < 300; k++) {
            window(&n.s, cases[i][(i == 0 ? k % 3 : k % 2) != 0]);
            assert_int_equal(n.s.rank, -1);
        }
        for (int k = 0; k < STRAGGLER_WINDOWS; k++)
            window(&n.s, above);
        assert_int_equal(n.s.rank, FIRST + 1);
        end(&n);
    }
}

/* Ranks that share cores: in each window each takes up to a third longer, at random. One that is slower by 1.38 times in the middle
 * is named all the same. */
static void test_noise(void **state)
{
    uint32_t z = 1;
    int named = 0;

    (void)state;
    for (int run = 0; run < 1000; run++) {
        struct node n;
        begin(&n, 2);
        for (int i = 0; i < 100; i++) {
            const int64_t own[2] = {1000 + draw(&z) % 333, 1000 + draw(&z) % 333};
            window(&n.s, own);
            assert_int_equal(n.s.rank, -1);
        }
        for (int i = 0; i < 20; i++) {
            const int64_t own[2] = {1000 + draw(&z) % 200, 1420 + draw(&z) % 300};
            window(&n.s, own);
        }
        named += n.s.rank == FIRST + 1;
        end(&n);
    }
    assert_true(named > 950);
}

static void test_a_window_needs_steps_of_all(void **state)
{
    static const int64_t own[2] = {1000, 1000};
    struct node n;

    (void)state;
    begin(&n, 2);
    assert_false(straggler_measure(&n.s, slots));
    assert_false(make_steps(&n.s, STRAGGLER_STEPS - 1, own));
    slots[0].step += 50; /* rank 1 lags, or never counts */
    assert_false(straggler_measure(&n.s, slots));
    slots[1].step++;
    assert_true(straggler_measure(&n.s, slots));
    assert_false(straggler_measure(&n.s, slots));
    end(&n);
}

/* Counts that go back, or that no clock counts: no window, and a new begin. */
static void test_any_counts(void **state)
{
    static const int64_t own[2] = {1000, 1000};
    struct node n;

    (void)state;
    for (int i = 0; i < 4; i++) {
        begin(&n, 2);
        assert_true(make_steps(&n.s, 20, own));
        slots[0].step += 20;
        slots[1].step += i == 0 ? (uint64_t)-10 : 20;
        slots[1].step_us = i == 1 ? 0 : i == 2 ? UINT64_MAX : slots[1].step_us;
        slots[1].wait_us = i == 3 ? UINT64_MAX / 2 : slots[1].wait_us;
        assert_false(straggler_measure(&n.s, slots));
        for (int r = 0; r < 2; r++)
            slots[r] = (struct rank_slot){.step = 1000};
        (void)straggler_measure(&n.s, slots);
        assert_true(make_steps(&n.s, 10, own));
        assert_int_equal(n.s.steps.median_us, 1000);
        end(&n);
    }
}

static void test_it_is_told_once_an_hour(void **state)
{
    static const int64_t slow[2] = {1000, 3000}, fair[2] = {1000, 1000};
    struct node n;
    int told = 0;

    (void)state;
    begin(&n, 2);
    for (int64_t now = 0; now < STRAGGLER_REPORT_MS; now += 60000) { /* it comes and goes */
        for (int i = 0; i < STRAGGLER_WINDOWS; i++)
            window(&n.s, now / 60000 % 2 ? slow : fair);
        told += straggler_due(&n.s, now);
    }
    assert_int_equal(told, 1);
    assert_true(straggler_due(&n.s, STRAGGLER_REPORT_MS + 60000));
    straggler_begin(&n.s, 0); /* also over restarts */
    memset(slots, 0, sizeof(slots));
    assert_int_equal(n.s.rank, -1);
    for (int i = 0; i < STRAGGLER_WINDOWS; i++)
        window(&n.s, slow);
    assert_int_equal(n.s.rank, 1);
    assert_false(straggler_due(&n.s, STRAGGLER_REPORT_MS + 120000));
    end(&n);
}

/* Of several nodes the leader's word is judged, each window of it once. */
static void test_a_window_is_judged_once(void **state)
{
    struct steps run = {.window = 1, .ranks = 8, .median_us = 100, .slow_us = 200, .slow_rank = 7};
    struct node n;

    (void)state;
    begin(&n, 2);
    for (int i = 0; i < 100; i++)
        straggler_judge(&n.s, &run);
    assert_int_equal(n.s.windows, 1);
    for (; run.window <= STRAGGLER_WINDOWS; run.window++)
        straggler_judge(&n.s, &run);
    assert_int_equal(n.s.rank, 7);
    end(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slow_rank_is_named_for_as_long_as_it_is_slow),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_a_window_needs_steps_of_all),
        cmocka_unit_test(test_any_counts),
        cmocka_unit_test(test_it_is_told_once_an_hour),
        cmocka_unit_test(test_a_window_is_judged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
