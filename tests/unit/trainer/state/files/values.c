/* values.c - lists of tensors, built in an arena. */
#include "values.h"

#include "common/cleanup.h"

#include <string.h>

static struct pt_tensor range(struct arena *a, int32_t n, float scale, int32_t dims, const int64_t *dim)
{
    float *x = arena_array(a, (size_t)n, float);
    struct pt_tensor t = {.data = x, .dtype = PT_F32, .dims = dims};

    for (int32_t i = 0; i < n; i++)
        x[i] = (float)i * scale;
    for (int32_t i = 0; i < dims; i++)
        t.dim[i] = dim[i];
    return t;
}

static struct pt_tensor single(struct arena *a, float v)
{
    struct pt_tensor one = range(a, 2, v, 0, NULL);

    one.data = (const float *)one.data + 1;
    return one;
}

static struct tensor_list list(struct arena *a, const struct tensor_row *rows, size_t n)
{
    return (struct tensor_list){memcpy(arena_array(a, n, struct tensor_row), rows, n * sizeof(*rows)), n};
}

struct tensor_list values_state(struct arena *a)
{
    const struct tensor_row rows[] = {
        {"conv1.weight", range(a, 6, 1, 3, (int64_t[]){1, 2, 3})},
        {"conv1.bias", single(a, 3)},
        {"head.weight", range(a, 24, 0.125F, 4, (int64_t[]){2, 3, 2, 2})},
    };

    return list(a, rows, ARRAY_LEN(rows));
}

struct tensor_list values_all(struct arena *a)
{
    static const int64_t longs[] = {1, -2};
    const struct pt_tensor tied = range(a, 4, 1, 1, (int64_t[]){4});
    const struct tensor_row rows[] = {
        {"wte", tied},
        {"\xc3\xa4", {.data = longs, .dtype = PT_I64, .dims = 1, .dim = {2}}},
        {"void", {.dtype = PT_F32, .dims = 3, .dim = {2, 0, 3}}},
        {"lm_head", tied},
        {"one", single(a, 6)},
        {"big", range(a, 300, 1, 2, (int64_t[]){300, 1})},
    };

    return list(a, rows, ARRAY_LEN(rows));
}

struct tensor_list values_batch(struct arena *a, int n)
{
    struct tensor_row *rows = arena_array(a, (size_t)n + 1, struct tensor_row);

    for (int i = 0; i < n; i++)
        rows[i] = (struct tensor_row){arena_printf(a, "key%d", i), single(a, (float)i)};
    return (struct tensor_list){rows, (size_t)n};
}
