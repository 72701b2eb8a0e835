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
    struct storages s;

    *out = (struct buf)BUF_INIT(limit);
    return pickle_encode(list, &a, out, &s, err);
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

/* Tensors of the same data, type and size share a storage; those without elements share none. */
static void test_sharing(void **state)
{
    static const float x[8] = {0};
    static const struct {
        struct pt_tensor t;
        int32_t storage;
    } cases[] = {
        {{.data = x, .dims = 1, .dim = {4}}, 0},
        {{.data = x, .dims = 2, .dim = {2, 2}}, 0},
        {{.data = x + 4, .dims = 1, .dim = {4}}, 1},
        {{.data = x, .dtype = PT_I32, .dims = 1, .dim = {4}}, 2},
        {{.data = x, .dims = 1, .dim = {8}}, 3},
        {{.dims = 1, .dim = {0}}, 4},
        {{.dims = 1, .dim = {0}}, 5},
        {{.data = x, .dims = 1, .dim = {8}}, 3},
    };
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf out = BUF_INIT(1 << 12);
    struct tensor_row row[ARRAY_LEN(cases)];
    struct storages s;
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        row[i] = (struct tensor_row){arena_printf(&a, "key%zu", i), cases[i].t};
    assert_int_equal(pickle_encode(&(struct tensor_list){row, ARRAY_LEN(cases)}, &a, &out, &s, &err), 0);
    assert_int_equal(s.len, 6);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct storage *got = &s.of[cases[i].storage];
        assert_ptr_equal(got->data, cases[i].t.data);
        assert_int_equal(got->dtype, cases[i].t.dtype);
        assert_int_equal(got->bytes, pt_tensor_bytes(&cases[i].t));
    }
}

static int encode_one(const struct pt_tensor *t, struct buf *out, struct err *err)
{
    const struct tensor_row row = {"w", *t};

    return encode(&(struct tensor_list){&row, 1}, 1000, out, err);
}

/* As Python's pickler writes them: by their size. */
static void test_numbers(void **state)
{
    static const struct {
        int64_t dim;
        const char *bytes;
        size_t len;
    } cases[] = {
        {255, "K\xff\x85", 3},
        {65535, "M\xff\xff\x85", 4},
        {INT32_MAX, "J\xff\xff\xff\x7f\x85", 6},
        {INT64_C(1) << 31, "\x8a\x05\0\0\0\x80\0\x85", 8},
        {INT64_C(1) << 39, "\x8a\x06\0\0\0\0\x80\0\x85", 9},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf out = {0};
        struct err err;
        assert_int_equal(encode_one(&(struct pt_tensor){.dims = 1, .dim = {cases[i].dim}}, &out, &err), 0);
        assert_non_null(memmem(out.data, out.len, cases[i].bytes, cases[i].len));
    }
}

static void test_refused(void **state)
{
    static const struct pt_tensor cases[] = {
        {.dims = -1}, {.dims = 9}, {.dims = 1, .dim = {-4}}, {.dims = 1, .dim = {INT64_C(1) << 61}}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf out = {0};
        struct err err;
        assert_int_equal(encode_one(&cases[i], &out, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_string_equal(err.msg, "w: its shape is impossible");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches), cmocka_unit_test(test_every_limit), cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
