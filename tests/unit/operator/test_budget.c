/* test_budget.c - how much passes may hold, and what one of them may make. */
#include "kube/reconciler.h"
#include "operator/budget.h"
#include "operator/plan/plan.h"
#include "test.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static void test_small_passes_always_begin(void **state)
{
    struct budget b = {0};
    struct budget_share full[2] = {0};

    (void)state;
    budget_take(&b, &full[0], "a", BUDGET_BYTES);
    assert_true(budget_has_room(&b, "a", BUDGET_FREE_BYTES));
    assert_false(budget_has_room(&b, "a", BUDGET_FREE_BYTES + 1));
    assert_false(budget_has_room(&b, "b", BUDGET_FREE_BYTES + 1));
    budget_give(&b, &full[0]);
    assert_true(budget_has_room(&b, "a", 8 * BUDGET_BYTES)); /* alone */
    budget_give(&b, &full[1]);                               /* never taken */
    assert_int_equal(b.held_bytes, 0);
    assert_null(b.first);
}

static void test_a_namespace_gets_a_quarter(void **state)
{
    struct budget b = {0};
    struct budget_share s[4] = {0};

    (void)state;
    budget_take(&b, &s[0], "a", MIB);
    budget_take(&b, &s[1], "b", MIB);
    budget_take(&b, &s[2], "a", 2 * MIB);
    assert_true(budget_has_room(&b, "a", MIB));
    assert_false(budget_has_room(&b, "a", MIB + 1));
    assert_true(budget_has_room(&b, "b", 3 * MIB));
    budget_give(&b, &s[1]); /* in the middle of the list */
    budget_give(&b, &s[0]);
    assert_int_equal(b.held_bytes, 2 * MIB);
    assert_true(budget_has_room(&b, "a", 2 * MIB));
    budget_take(&b, &s[3], "c", 13 * MIB);
    assert_false(budget_has_room(&b, "b", MIB + 1));
    assert_true(budget_has_room(&b, "b", MIB));
}

/* However many hold much: one that holds nothing finds room. */
static void test_the_last_quarter_is_for_who_holds_nothing(void **state)
{
    static const char *const NAMES[] = {"a", "b", "c", "d"};
    struct budget_share s[64] = {0};
    struct budget b = {0};
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        budget_take(&b, &s[n++], NAMES[i], MIB);
    for (size_t tries = 0; tries < 4 * ARRAY_LEN(NAMES); tries++)
        if (budget_has_room(&b, NAMES[tries % 4], MIB))
            budget_take(&b, &s[n++], NAMES[tries % 4], MIB);
    assert_int_equal(b.held_bytes, BUDGET_BYTES - BUDGET_NS_BYTES);
    assert_true(budget_has_room(&b, "e", BUDGET_NS_BYTES));
}

static void test_what_one_pass_may_make(void **state)
{
    struct budget b = {0};
    struct budget_share half = {0};
    struct budget_share rest = {0};

    (void)state;
    assert_int_equal(budget_create_bytes(&b), PLAN_CREATE_BYTES);
    budget_take(&b, &half, "a", BUDGET_BYTES / 2);
    assert_int_equal(budget_create_bytes(&b), PLAN_CREATE_BYTES / 2);
    budget_take(&b, &rest, "b", BUDGET_BYTES);
    assert_int_equal(budget_create_bytes(&b), PLAN_FIRST_BYTES);
}

/* The figure that budget.h and SECURITY.md name: as many passes as there may be, each as greedy as it may be. */
static void test_the_worst_case(void **state)
{
    static struct budget_share s[WORKQUEUE_PARALLEL];
    static const size_t SIZES[] = {4 * MIB, 600 * KIB, 100 * KIB, BUDGET_FREE_BYTES};
    struct budget b = {0};
    int n = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
        for (int ns = 0; n < WORKQUEUE_PARALLEL && ns < 8;) {
            const char name[] = {(char)('a' + ns), '\0'};
            static const char *const NAMES[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
            if (!budget_has_room(&b, name, SIZES[i]))
                ns++;
            else
                budget_take(&b, &s[n++], NAMES[ns], SIZES[i]);
        }
    }
    assert_int_equal(n, WORKQUEUE_PARALLEL);
    assert_in_range(b.held_bytes, BUDGET_BYTES, 22 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_passes_always_begin),
        cmocka_unit_test(test_a_namespace_gets_a_quarter),
        cmocka_unit_test(test_the_last_quarter_is_for_who_holds_nothing),
        cmocka_unit_test(test_what_one_pass_may_make),
        cmocka_unit_test(test_the_worst_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
