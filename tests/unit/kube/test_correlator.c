/* test_correlator.c - repeated Events are counted, and an object's are limited, with time as an argument. */
#include "kube/correlator.h"

#include "test.h"

#include <stdio.h>

static int count(struct correlator *c, const char *object, const char *message, int64_t now_ms)
{
    const struct correlator_event *e = correlator_see(c, object, "r", message, now_ms, 0);

    return e ? e->count : 0;
}

static void test_same_event_counts_up(void **ctx)
{
    struct correlator c = {0};
    const struct correlator_event *e = correlator_see(&c, "o", "r", "m", 0, 111);

    (void)ctx;
    assert_int_equal(e->count, 1);
    uint64_t id = e->id;
    e = correlator_see(&c, "o", "r", "m", 1000, 222);
    assert_int_equal(e->count, 2);
    assert_true(e->first_wall_ms == 111);
    assert_true(e->id == id);
    /* Another message, reason or object is another Event, at the same time, too. */
    assert_true(correlator_see(&c, "o", "r", "other", 1000, 111)->id != id);
    assert_int_equal(correlator_see(&c, "o", "r2", "m", 1000, 0)->count, 1);
    assert_int_equal(correlator_see(&c, "o2", "r", "m", 1000, 0)->count, 1);
    assert_int_equal(correlator_see(&c, "o2r", "", "m", 1000, 0)->count, 1);
}

static void test_burst_then_one_per_five_minutes(void **ctx)
{
    struct correlator c = {0};

    (void)ctx;
    for (int i = 0; i < CORRELATOR_BURST; i++)
        assert_int_equal(count(&c, "o", "m", 0), i + 1);
    assert_int_equal(count(&c, "o", "m", 0), 0);
    assert_int_equal(count(&c, "o", "another", 0), 0);
    assert_int_equal(count(&c, "another", "m", 0), 1);
    assert_int_equal(count(&c, "o", "m", CORRELATOR_REFILL_MS - 1000), 0);
    assert_int_equal(count(&c, "o", "m", CORRELATOR_REFILL_MS + 1), CORRELATOR_BURST + 1);
    assert_int_equal(count(&c, "o", "m", CORRELATOR_REFILL_MS + 2), 0);
    /* A long silence gives back the burst and no more. */
    for (int i = 0; i < CORRELATOR_BURST; i++)
        assert_int_equal(count(&c, "o", "m", (int64_t)1000 * CORRELATOR_REFILL_MS), CORRELATOR_BURST + 2 + i);
    assert_int_equal(count(&c, "o", "m", (int64_t)1000 * CORRELATOR_REFILL_MS), 0);
}

static void test_the_longest_unused_is_forgotten(void **ctx)
{
    struct correlator c = {0};
    char object[16];

    (void)ctx;
    for (int i = 0; i < 2000; i++) {
        snprintf(object, sizeof(object), "o%d", i);
        assert_int_equal(count(&c, object, "m", i), 1);
        assert_int_equal(count(&c, "steady", "m", i), i < CORRELATOR_BURST ? i + 1 : 0);
    }
    assert_int_equal(c.events.n, CORRELATOR_ROWS);
    assert_int_equal(c.objects.n, CORRELATOR_ROWS);
    assert_int_equal(count(&c, "o1999", "m", 2000), 2);
    assert_int_equal(count(&c, "o0", "m", 2000), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_event_counts_up),
        cmocka_unit_test(test_burst_then_one_per_five_minutes),
        cmocka_unit_test(test_the_longest_unused_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
