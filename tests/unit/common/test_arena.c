/* test_arena.c - alignment, zeroing, growth over chunks, reuse after a reset. */
#include "common/arena.h"
#include "test.h"

#include <string.h>

static void test_aligned_and_zeroed(void **state)
{
    struct arena a = {0};

    (void)state;
    for (size_t size = 1; size < 6000; size += 37) {
        unsigned char *p = arena_alloc(&a, size);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    arena_release(&a);
    assert_int_equal(a.used_bytes, 0);
}

static void test_usable_again_and_zeroed(void **state)
{
    struct arena a = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        memset(arena_alloc(&a, 1000), 0xff, 1000);
    arena_release(&a);
    assert_int_equal(a.used_bytes, 0);
    unsigned char *p = arena_alloc(&a, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(p[i], 0);
    arena_release(&a);
}

static void test_strings(void **state)
{
    struct arena a = {0};

    (void)state;
    assert_string_equal(arena_strdup(&a, "abc"), "abc");
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_printf(&a, "%s-%d", "node", 7), "node-7");
    assert_string_equal(arena_strdup(&a, ""), "");
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aligned_and_zeroed),
        cmocka_unit_test(test_usable_again_and_zeroed),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
