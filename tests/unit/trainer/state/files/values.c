/* values.c - plain data, built in an arena. */
#include "values.h"

#include "common/cleanup.h"

#include <string.h>

#define TENSOR(a, t, numbers, ...)                                                                           \
    pt_tensor((struct pt_tensor){.data = memcpy(arena_alloc(a, sizeof(numbers)), numbers, sizeof(numbers)),  \
                                 .dtype = (t),                                                               \
                                 __VA_ARGS__})

static struct pt_value range(struct arena *a, int32_t n, float scale, int32_t dims, const int64_t *dim)
{
    float *x = arena_array(a, (size_t)n, float);
    struct pt_tensor t = {.data = x, .dtype = PT_F32, .dims = dims};

    for (int32_t i = 0; i < n; i++)
        x[i] = (float)i * scale;
    for (int32_t i = 0; i < dims; i++)
        t.dim[i] = dim[i];
    return pt_tensor(t);
}

static struct pt_value vector(struct arena *a, int32_t n)
{
    return range(a, n, 1, 1, (int64_t[]){n});
}

static struct pt_value single(struct arena *a, float v)
{
    struct pt_value one = range(a, 2, v, 0, NULL);

    one.tensor.data = (const float *)one.tensor.data + 1;
    return one;
}

static struct pt_item item(const char *key, struct pt_value value)
{
    return (struct pt_item){pt_str(key), value};
}

static struct pt_value dict(struct arena *a, enum pt_type type, const struct pt_item *items, size_t n)
{
    return pt_dict(type, memcpy(arena_array(a, n + 1, struct pt_item), items, n * sizeof(*items)), n);
}

static struct pt_value seq(struct arena *a, enum pt_type type, const struct pt_value *values, size_t n)
{
    return pt_seq(type, memcpy(arena_array(a, n + 1, struct pt_value), values, n * sizeof(*values)), n);
}

#define DICT(a, type, ...)                                                                                   \
    dict(a, type, (struct pt_item[]){__VA_ARGS__}, ARRAY_LEN(((struct pt_item[]){__VA_ARGS__})))
#define SEQ(a, type, ...)                                                                                    \
    seq(a, type, (struct pt_value[]){__VA_ARGS__}, ARRAY_LEN(((struct pt_value[]){__VA_ARGS__})))

struct pt_value values_state(struct arena *a)
{
    return DICT(a, PT_ORDERED_DICT, item("conv1.weight", range(a, 6, 1, 3, (int64_t[]){1, 2, 3})),
                item("conv1.bias", single(a, 3)),
                item("head.weight", range(a, 24, 0.125F, 4, (int64_t[]){2, 3, 2, 2})));
}

static struct pt_value some_types(struct arena *a)
{
    return SEQ(a, PT_LIST, TENSOR(a, PT_F64, ((double[]){1.5, -2}), .dims = 1, .dim = {2}),
               TENSOR(a, PT_F16, ((uint16_t[]){0x3e00, 0xc000}), .dims = 1, .dim = {2}),
               TENSOR(a, PT_BF16, ((uint16_t[]){0x3fc0, 0xc000}), .dims = 1, .dim = {2}),
               TENSOR(a, PT_I64, ((int64_t[]){1, -2}), .dims = 1, .dim = {2}),
               TENSOR(a, PT_I32, ((int32_t[]){1, -2}), .dims = 1, .dim = {2}),
               TENSOR(a, PT_U8, ((uint8_t[]){1, 254}), .dims = 1, .dim = {2}),
               TENSOR(a, PT_BOOL8, ((uint8_t[]){1, 0}), .dims = 1, .dim = {2}));
}

static struct pt_value some_states(struct arena *a)
{
    struct pt_value first = DICT(a, PT_DICT, item("step", single(a, 5)), item("exp_avg", vector(a, 3)));
    struct pt_value second = DICT(a, PT_DICT, item("step", single(a, 6)), item("exp_avg", vector(a, 2)));

    return DICT(a, PT_DICT, {pt_int(0), first}, {pt_int(1), second});
}

static struct pt_value some_tuples(struct arena *a)
{
    return SEQ(a, PT_TUPLE, SEQ(a, PT_TUPLE, pt_int(1), pt_int(2)),
               SEQ(a, PT_TUPLE, pt_int(1), pt_int(2), pt_int(3)),
               SEQ(a, PT_TUPLE, pt_int(1), pt_int(2), pt_int(3), pt_int(4)));
}

static struct pt_value some_empty(struct arena *a)
{
    return SEQ(a, PT_LIST, pt_seq(PT_LIST, NULL, 0), pt_dict(PT_DICT, NULL, 0), pt_seq(PT_TUPLE, NULL, 0),
               pt_dict(PT_ORDERED_DICT, NULL, 0));
}

static struct pt_value some_single(struct arena *a)
{
    return SEQ(a, PT_LIST, SEQ(a, PT_LIST, pt_int(1)), DICT(a, PT_DICT, item("step", pt_int(1))),
               SEQ(a, PT_TUPLE, pt_int(1)), DICT(a, PT_ORDERED_DICT, item("step", pt_int(1))));
}

struct pt_value values_all(struct arena *a)
{
    const struct pt_value none = {.type = PT_NONE};
    const struct pt_value yes = {.type = PT_BOOL, .b = true};
    const struct pt_value no = {.type = PT_BOOL, .b = false};
    struct pt_value tied = vector(a, 4);
    struct pt_value hollow = pt_tensor((struct pt_tensor){.dtype = PT_F32, .dims = 3, .dim = {2, 0, 3}});

    return DICT(
        a, PT_DICT, item("epoch", pt_int(3)), item("lr", pt_float(0.001)),
        item("name", pt_str("ad\xc3\xa4m")), item("betas", SEQ(a, PT_TUPLE, pt_float(0.9), pt_float(0.999))),
        item("flags", SEQ(a, PT_LIST, yes, no, none)), item("byte", pt_int(255)), item("short", pt_int(256)),
        item("word", pt_int(65535)), item("int", pt_int(65536)), item("neg", pt_int(-1)),
        item("low", pt_int(INT32_MIN)), item("over", pt_int(INT64_C(1) << 31)),
        item("big", pt_int(INT64_C(1) << 40)), item("min", pt_int(INT64_MIN)), item("max", pt_int(INT64_MAX)),
        item("five_bytes", pt_int((INT64_C(1) << 39) - 1)), item("six_bytes", pt_int(INT64_C(1) << 39)),
        item("none", none), item("empty", some_empty(a)), item("one", some_single(a)),
        item("tuples", some_tuples(a)), item("state", some_states(a)),
        item("tied", DICT(a, PT_ORDERED_DICT, item("wte", tied), item("lm_head", tied))),
        item("void", hollow), item("types", some_types(a)));
}

struct pt_value values_batches(struct arena *a)
{
    static const size_t sizes[] = {2, 999, 1000, 1001, 2000, 2001};
    struct pt_item *items = arena_array(a, 2001, struct pt_item);
    struct pt_value *numbers = arena_array(a, 2001, struct pt_value);
    struct pt_value *rows = arena_array(a, 3 * ARRAY_LEN(sizes), struct pt_value);

    for (int i = 0; i < 2001; i++) {
        items[i] = item(arena_printf(a, "key%d", i), pt_int(7));
        numbers[i] = pt_int(i);
    }
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        rows[i] = pt_dict(PT_DICT, items, sizes[i]);
        rows[ARRAY_LEN(sizes) + i] = pt_dict(PT_ORDERED_DICT, items, sizes[i]);
        rows[2 * ARRAY_LEN(sizes) + i] = pt_seq(PT_LIST, numbers, sizes[i]);
    }
    return SEQ(a, PT_LIST, pt_seq(PT_LIST, rows, ARRAY_LEN(sizes)),
               pt_seq(PT_LIST, rows + ARRAY_LEN(sizes), ARRAY_LEN(sizes)),
               pt_seq(PT_LIST, rows + 2 * ARRAY_LEN(sizes), ARRAY_LEN(sizes)));
}
