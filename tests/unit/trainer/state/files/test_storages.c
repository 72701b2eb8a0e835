/* test_storages.c - what is shared, what is not, and shapes that cannot be. */
#include "common/cleanup.h"
#include "test.h"
#include "trainer/state/files/storages.h"

#include <string.h>

static struct pt_tensor tensor_of(const void *data, enum pt_dtype dtype, int64_t n)
{
    return (struct pt_tensor){.data = data, .dtype = dtype, .dims = 1, .dim = {n}};
}

static void test_sharing(void **state)
{
    static const float x[8] = {0};
    cleanup_arena struct arena a = {0};
    struct storages *s = arena_new(&a, struct storages);
    struct pt_tensor square = {.data = x, .dtype = PT_F32, .dims = 2, .dim = {2, 2}};
    struct pt_tensor cases[] = {tensor_of(x, PT_F32, 4),     square,
                                tensor_of(x + 4, PT_F32, 4), tensor_of(x, PT_I32, 4),
                                tensor_of(x, PT_F32, 8),     tensor_of(NULL, PT_F32, 0),
                                tensor_of(NULL, PT_F32, 0),  tensor_of(x, PT_F32, 8)};
    static const int32_t want[] = {0, 0, 1, 2, 3, 4, 5, 3};
    struct err err = {0};

    (void)state;
    s->arena = &a;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct storage *got = storages_of(s, &cases[i], &err);
        assert_non_null(got);
        assert_int_equal(got->number, want[i]);
    }
    assert_int_equal(s->len, 6);
    int32_t n = 0;
    for (const struct storage *e = s->first; e; e = e->next)
        assert_int_equal(e->number, n++);
    assert_int_equal(n, 6);
    assert_int_equal(s->first->bytes, 16);
}

static void test_refused(void **state)
{
    static const float x[1] = {0};
    const struct {
        struct pt_tensor t;
        const char *names;
    } cases[] = {
        {{.data = x, .dims = -1}, "-1 dimensions, expected 0..8"},
        {{.data = x, .dims = 9}, "9 dimensions"},
        {{.data = x, .dims = 2, .dim = {1, -1}}, "dimension 1: -1"},
        {{.data = x, .dims = 2, .dim = {INT64_C(1) << 32, INT64_C(1) << 31}}, "more elements"},
        {{.data = x, .dims = 1, .dim = {INT64_C(1) << 61}}, "more bytes"},
        {{.data = NULL, .dims = 1, .dim = {2}}, "no data for 2 elements"},
        {{.data = NULL}, "no data for 1 elements"},
    };
    cleanup_arena struct arena a = {0};
    struct storages *s = arena_new(&a, struct storages);

    (void)state;
    s->arena = &a;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        assert_null(storages_of(s, &cases[i].t, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].names));
    }
    assert_int_equal(s->len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sharing), cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
