/* test_pickle_memo.c - numbers by content, kinds apart, many keys. */
#include "test.h"
#include "trainer/state/files/pickle_memo.h"

static void test_numbers(void **state)
{
    cleanup_arena struct arena a = {0};
    struct pickle_memo m = {.arena = &a};

    (void)state;
    assert_int_equal(pickle_memo_find(&m, PICKLE_MEMO_TEXT, "x"), PICKLE_MEMO_NONE);
    assert_int_equal(pickle_memo_add(&m, PICKLE_MEMO_TEXT, "x"), 0);
    assert_int_equal(pickle_memo_find(&m, PICKLE_MEMO_GLOBAL, "x"), PICKLE_MEMO_NONE);
    assert_int_equal(pickle_memo_add(&m, PICKLE_MEMO_GLOBAL, "x"), 1);
    m.len++; /* an unnamed thing */
    assert_int_equal(pickle_memo_add(&m, PICKLE_MEMO_TEXT, ""), 3);
    assert_int_equal(pickle_memo_find(&m, PICKLE_MEMO_TEXT, "x"), 0);
    assert_int_equal(pickle_memo_find(&m, PICKLE_MEMO_GLOBAL, "x"), 1);
    assert_int_equal(pickle_memo_find(&m, PICKLE_MEMO_TEXT, ""), 3);
}

static void test_many(void **state)
{
    cleanup_arena struct arena a = {0};
    struct pickle_memo m = {.arena = &a};

    (void)state;
    for (int i = 0; i < 5 * PICKLE_MEMO_BUCKETS; i++)
        assert_int_equal(pickle_memo_add(&m, PICKLE_MEMO_TEXT, arena_printf(&a, "key %d", i)), i);
    for (int i = 0; i < 5 * PICKLE_MEMO_BUCKETS; i++)
        assert_int_equal(pickle_memo_find(&m, PICKLE_MEMO_TEXT, arena_printf(&a, "key %d", i)), i);
    assert_int_equal(pickle_memo_find(&m, PICKLE_MEMO_TEXT, "key"), PICKLE_MEMO_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_many)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
