/* test_split.c - sizes and refusals of a split; its items are compared with PyTorch's beside the weights. */
#include "test.h"
#include "trainer/data/split.h"

#include <string.h>

static void test_parts(void **state)
{
    struct torch_rng g;
    struct torch_rng same;
    struct split s;
    uint32_t order[10];
    uint32_t whole[10];
    struct err err = {0};

    (void)state;
    torch_rng_seed(&g, 4);
    same = g;
    assert_int_equal(split_random(&g, 7, 3, order, &s, &err), 0);
    torch_rng_randperm(&same, whole, 10);
    assert_int_equal(s.first_items, 7);
    assert_int_equal(s.second_items, 3);
    assert_memory_equal(s.first, whole, 7 * sizeof(*whole));
    assert_memory_equal(s.second, whole + 7, 3 * sizeof(*whole));
    assert_int_equal(split_random(&g, 0, 10, order, &s, &err), 0);
    assert_ptr_equal(s.second, order);
}

static void test_refused(void **state)
{
    static const int64_t cases[][2] = {{-1, 5}, {5, -1}, {INT64_MAX, 1}, {INT32_MAX, 1}};
    struct torch_rng g;
    struct split s = {.first_items = 42};

    (void)state;
    torch_rng_seed(&g, 4);
    struct torch_rng before = g;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        assert_int_equal(split_random(&g, cases[i][0], cases[i][1], NULL, &s, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
    }
    assert_int_equal(s.first_items, 42);
    assert_memory_equal(&g, &before, sizeof(g));
}

/* What torch.utils.data.random_split makes of [1 - f, f]. */
static void fractions_are_random_splits(void **state)
{
    (void)state;
    static const struct {
        struct split_spec spec;
        int64_t items, train, val; /* 0, 0: refused */
    } cases[] = {
        {{.val_fraction = 0.2}, 10, 8, 2},
        {{.val_fraction = 0.2}, 11, 9, 2},
        {{.val_fraction = 0.3}, 10, 7, 3},
        {{.val_fraction = 0.5}, 7, 4, 3},
        {{.val_fraction = 0.1}, 60000, 54000, 6000},
        {{0}, 5, 5, 0},
        {{.val_items = 2}, 5, 3, 2},
        {{.train_items = 3, .val_items = 2}, 5, 3, 2},
        {{.train_items = 4, .val_items = 2}, 5, 0, 0},
        {{.train_items = 4}, 5, 0, 0},
        {{.val_items = 5}, 5, 0, 0},
        {{.val_items = 6}, 5, 0, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t train = 0, val = 0;
        struct err err;
        int rc = split_sizes(&cases[i].spec, cases[i].items, &train, &val, &err);
        assert_int_equal(rc, cases[i].train ? 0 : -1);
        assert_true(train == cases[i].train && val == cases[i].val);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fractions_are_random_splits),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
