/* test_split.c - sizes and refusals of a split; its items are compared with PyTorch's beside the weights. */
#include "test.h"
#include "trainer/data/split.h"

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(fractions_are_random_splits)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
