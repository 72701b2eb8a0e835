/* test_correlator.c - the rules by which events become one or too many, with time as an argument. */
#include "kube/correlator.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

static void test_same_event_counts_up(void **ctx)
{
    struct correlator c = {0};
    struct correlator_verdict v = correlator_see(&c, "o", "r", "m", 0, 111);

    (void)ctx;
    assert_false(v.repeated);
    assert_int_equal(v.count, 1);
    snprintf(v.name, CORRELATOR_NAME_BYTES, "kept");
    v = correlator_see(&c, "o", "r", "m", 1000, 222);
    assert_true(v.repeated);
    assert_int_equal(v.count, 2);
    assert_true(v.first_wall_ms == 111);
    assert_string_equal(v.name, "kept");
    assert_false(correlator_see(&c, "o", "r", "other", 1000, 0).repeated);
    assert_false(correlator_see(&c, "o", "r2", "m", 1000, 0).repeated);
    assert_false(correlator_see(&c, "o2", "r", "m", 1000, 0).repeated);
    correlator_release(&c);
}

static void test_similar_ones_are_combined(void **ctx)
{
    struct correlator c = {0};
    struct correlator_verdict v;
    char message[16];

    (void)ctx;
    for (int i = 0; i < CORRELATOR_SIMILAR; i++) {
        snprintf(message, sizeof(message), "m%d", i);
        assert_false(correlator_see(&c, "o", "r", message, i, 0).combined);
    }
    v = correlator_see(&c, "o", "r", "m-one-more", 20, 0);
    assert_true(v.combined);
    assert_false(v.repeated);
    v = correlator_see(&c, "o", "r", "m-another", 21, 0);
    assert_true(v.combined && v.repeated);
    assert_int_equal(v.count, 2);
    /* ten quiet minutes later they stand for themselves again */
    assert_false(correlator_see(&c, "o", "r", "m-later", 22 + CORRELATOR_WINDOW_MS, 0).combined);
    correlator_release(&c);
}

static void test_burst_then_one_per_five_minutes(void **ctx)
{
    struct correlator c = {0};

    (void)ctx;
    for (int i = 0; i < CORRELATOR_BURST; i++)
        assert_false(correlator_see(&c, "o", "r", "m", 0, 0).drop);
    assert_true(correlator_see(&c, "o", "r", "m", 0, 0).drop);
    assert_false(correlator_see(&c, "another", "r", "m", 0, 0).drop);
    assert_true(correlator_see(&c, "o", "r", "m", CORRELATOR_REFILL_MS - 1000, 0).drop);
    assert_false(correlator_see(&c, "o", "r", "m", CORRELATOR_REFILL_MS + 1, 0).drop);
    assert_true(correlator_see(&c, "o", "r", "m", CORRELATOR_REFILL_MS + 2, 0).drop);
    correlator_release(&c);
}

static void test_the_longest_unused_is_forgotten(void **ctx)
{
    struct correlator c = {0};
    char object[16];

    (void)ctx;
    for (int i = 0; i < 2000; i++) {
        snprintf(object, sizeof(object), "o%d", i);
        assert_int_equal(correlator_see(&c, object, "r", "m", i, 0).count, 1);
        assert_int_equal(correlator_see(&c, "steady", "r", "m", i, 0).drop, i >= CORRELATOR_BURST);
    }
    assert_int_equal(c.events.n, 512);
    assert_int_equal(c.objects.n, 512);
    assert_int_equal(correlator_see(&c, "o1999", "r", "m", 2000, 0).count, 2);
    assert_int_equal(correlator_see(&c, "o0", "r", "m", 2000, 0).count, 1);
    correlator_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_event_counts_up),
        cmocka_unit_test(test_similar_ones_are_combined),
        cmocka_unit_test(test_burst_then_one_per_five_minutes),
        cmocka_unit_test(test_the_longest_unused_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
