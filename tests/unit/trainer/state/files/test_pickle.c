/* test_pickle.c - Python's bytes, and values that have none. */
#include "../../../../golden/torch/golden.h"
#include "test.h"
#include "trainer/state/files/pickle.h"
#include "values.h"

#include <string.h>
#include <zlib.h>

static int encode(const struct pt_value *v, size_t limit, struct buf *out, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct storages *s = arena_new(&a, struct storages);

    *out = (struct buf)BUF_INIT(limit);
    return pickle_encode(v, &a, out, s, err);
}

static void test_scalars(void **state)
{
    static const struct {
        struct pt_value v;
        const char *want;
        size_t len;
    } cases[] = {
        {{.type = PT_NONE}, "\x80\x02N.", 4},
        {{.type = PT_INT, .i = 7}, "\x80\x02K\x07.", 5},
        {{.type = PT_INT, .i = -129}, "\x80\x02J\x7f\xff\xff\xff.", 8},
        {{.type = PT_FLOAT, .f = -2}, "\x80\x02G\xc0\0\0\0\0\0\0\0.", 12},
        {{.type = PT_STR, .s = "ab"}, "\x80\x02X\x02\0\0\0abq\0.", 12},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf out = {0};
        struct err err = {0};
        assert_int_equal(encode(&cases[i].v, 100, &out, &err), 0);
        assert_int_equal(out.len, cases[i].len);
        assert_memory_equal(out.data, cases[i].want, out.len);
    }
}

static void test_batches(void **state)
{
    cleanup_arena struct arena a = {0};
    struct pt_value v = values_batches(&a);
    cleanup_buf struct buf out = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(encode(&v, 1 << 20, &out, &err), 0);
    assert_int_equal(out.len, GOLDEN_BATCHES_LEN);
    assert_int_equal(crc32(0, (const Bytef *)out.data, (uInt)out.len), GOLDEN_BATCHES_PICKLE);
}

/* Too small a limit is an error wherever it strikes. */
static void test_every_limit(void **state)
{
    cleanup_arena struct arena a = {0};
    struct pt_value v = values_all(&a);
    cleanup_buf struct buf whole = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(encode(&v, 1 << 20, &whole, &err), 0);
    for (size_t limit = 0; limit <= whole.len; limit++) {
        cleanup_buf struct buf out = {0};
        assert_int_equal(encode(&v, limit, &out, &err), limit < whole.len ? -1 : 0);
    }
}

static void test_depth(void **state)
{
    struct pt_value nested[PT_DEPTH_MAX + 2];

    (void)state;
    for (size_t levels = 1; levels <= ARRAY_LEN(nested); levels++) {
        cleanup_buf struct buf out = {0};
        struct err err = {0};
        nested[0] = pt_seq(PT_LIST, NULL, 0);
        for (size_t i = 1; i < levels; i++)
            nested[i] = pt_seq(i % 2 ? PT_LIST : PT_TUPLE, &nested[i - 1], 1);
        int rc = encode(&nested[levels - 1], 10000, &out, &err);
        assert_int_equal(rc, levels > PT_DEPTH_MAX + 1 ? -1 : 0);
        if (rc < 0)
            assert_non_null(strstr(err.msg, "nested deeper than 32"));
    }
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

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
        cleanup_buf struct buf out = {0};
        struct err err = {0};
        struct pt_value v = pt_str(i < ARRAY_LEN(good) ? good[i] : bad[i - ARRAY_LEN(good)]);
        int rc = encode(&v, 100, &out, &err);
        assert_int_equal(rc, i < ARRAY_LEN(good) ? 0 : -1);
        if (rc < 0)
            assert_non_null(strstr(err.msg, "string: byte 0 is not UTF-8"));
    }
}

static void test_refused(void **state)
{
    struct pt_item float_key = {pt_float(1), pt_int(1)};
    struct pt_value bad = pt_tensor((struct pt_tensor){.dims = 1, .dim = {-4}});
    struct pt_item inner = {pt_str("exp_avg"), bad};
    struct pt_item middle = {pt_int(17), pt_dict(PT_DICT, &inner, 1)};
    struct pt_value list = pt_dict(PT_ORDERED_DICT, &middle, 1);
    const struct {
        struct pt_value v;
        const char *names;
    } cases[] = {
        {pt_str(NULL), "string: none given"},
        {pt_dict(PT_DICT, &float_key, 1), "dict key: expected a string or an integer"},
        {pt_seq(PT_TUPLE, &list, 1), "0: 17: exp_avg: tensor: dimension 0: -4"},
        {{.type = (enum pt_type)99}, "unknown type 99"},
        {pt_tensor((struct pt_tensor){.dims = 3, .dim = {0, INT64_MAX, 3}}), "strides"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf out = {0};
        struct err err = {0};
        assert_int_equal(encode(&cases[i].v, 1000, &out, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].names));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars), cmocka_unit_test(test_batches), cmocka_unit_test(test_every_limit),
        cmocka_unit_test(test_depth),   cmocka_unit_test(test_utf8),    cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
