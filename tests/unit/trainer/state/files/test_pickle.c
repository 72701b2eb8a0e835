/* test_pickle.c - Python's bytes, and state_dicts that have none. */
#include "../../../../golden/torch/golden.h"
#include "test.h"
#include "trainer/state/files/pickle.h"
#include "values.h"

#include <string.h>
#include <zlib.h>

static int encode(const struct tensor_list *list, size_t limit, struct buf *out, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct storages *s = arena_new(&a, struct storages);

    *out = (struct buf)BUF_INIT(limit);
    return pickle_encode(list, &a, out, s, err);
}

/* Around the number of items that Python's pickler writes at a time. */
static void test_batches(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(golden_pickles); i++) {
        cleanup_arena struct arena a = {0};
        cleanup_buf struct buf out = {0};
        const struct golden_pickle *want = &golden_pickles[i];
        const struct tensor_list list = values_batch(&a, want->tensors);
        struct err err = {0};
        assert_int_equal(encode(&list, 1 << 20, &out, &err), 0);
        assert_int_equal(out.len, want->len);
        assert_int_equal(crc32(0, (const Bytef *)out.data, (uInt)out.len), want->crc);
    }
}

/* Too small a limit is an error wherever it strikes. */
static void test_every_limit(void **state)
{
    cleanup_arena struct arena a = {0};
    const struct tensor_list list = values_all(&a);
    cleanup_buf struct buf whole = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(encode(&list, 1 << 20, &whole, &err), 0);
    for (size_t limit = 0; limit <= whole.len; limit++) {
        cleanup_buf struct buf out = {0};
        assert_int_equal(encode(&list, limit, &out, &err), limit < whole.len ? -1 : 0);
    }
}

static int encode_one(const char *name, const struct pt_tensor *t, struct err *err)
{
    cleanup_buf struct buf out = {0};
    const struct tensor_row row = {name, *t};

    return encode(&(struct tensor_list){&row, 1}, 1000, &out, err);
}

static void test_utf8(void **state)
{
    static const char *const good[] = {"",
                                       "a\x7f",
                                       "\xc2\x80",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {
        "\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",    "\xf4\x90\x80\x80",
        "\xff", "\xc2",     "\xe2\x82",     "\xc2z",        "\xf8\x88\x80\x80\x80"};
    static const float one = 1;
    const struct pt_tensor t = {.data = &one};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
        struct err err = {0};
        int rc = encode_one(i < ARRAY_LEN(good) ? good[i] : bad[i - ARRAY_LEN(good)], &t, &err);
        assert_int_equal(rc, i < ARRAY_LEN(good) ? 0 : -1);
        if (rc < 0)
            assert_non_null(strstr(err.msg, "string: byte 0 is not UTF-8"));
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *name;
        struct pt_tensor t;
        const char *says;
    } cases[] = {
        {NULL, {.dims = 0}, "a tensor without a name"},
        {"w", {.dims = 1, .dim = {-4}}, "w: tensor: dimension 0: -4"},
        {"w", {.dims = 3, .dim = {0, INT64_MAX, 3}}, "w: tensor: strides"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        assert_int_equal(encode_one(cases[i].name, &cases[i].t, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_every_limit),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
