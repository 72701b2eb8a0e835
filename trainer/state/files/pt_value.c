/* pt_value.c - sizes and look-ups of pt_values. */
#include "trainer/state/files/pt_value.h"

#include <string.h>

size_t pt_dtype_bytes(enum pt_dtype dtype)
{
    switch (dtype) {
    case PT_F64:
    case PT_I64:
        return 8;
    case PT_F32:
    case PT_I32:
        return 4;
    case PT_F16:
    case PT_BF16:
        return 2;
    case PT_U8:
    case PT_BOOL8:
        return 1;
    }
    return 0;
}

int64_t pt_tensor_bytes(const struct pt_tensor *t)
{
    int64_t n = (int64_t)pt_dtype_bytes(t->dtype);

    if (t->dims < 0 || t->dims > PT_DIMS_MAX)
        return -1;
    for (int32_t i = 0; i < t->dims; i++)
        if (t->dim[i] < 0 || __builtin_mul_overflow(n, t->dim[i], &n))
            return -1;
    return n;
}

static bool is_dict(const struct pt_value *v)
{
    return v && (v->type == PT_DICT || v->type == PT_ORDERED_DICT);
}

const struct pt_value *pt_find(const struct pt_value *v, const char *key)
{
    for (size_t i = is_dict(v) ? v->dict.len : 0; i-- > 0;) {
        const struct pt_item *item = &v->dict.items[i];
        if (item->key.type == PT_STR && strcmp(item->key.s, key) == 0)
            return &item->value;
    }
    return NULL;
}

const struct pt_value *pt_find_int(const struct pt_value *v, int64_t key)
{
    for (size_t i = is_dict(v) ? v->dict.len : 0; i-- > 0;) {
        const struct pt_item *item = &v->dict.items[i];
        if (item->key.type == PT_INT && item->key.i == key)
            return &item->value;
    }
    return NULL;
}
