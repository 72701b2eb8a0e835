/* tensor.c - names and sizes of element types. */
#include "trainer/state/files/tensor.h"

/* In the order of enum pt_dtype. */
static const struct {
    const char *name;
    uint8_t bits;
} DTYPES[PT_DTYPES] = {{"F32", 32},        {"F64", 64},    {"F16", 16},    {"BF16", 16},   {"I64", 64},
                       {"I32", 32},        {"U8", 8},      {"BOOL", 8},    {"I8", 8},      {"I16", 16},
                       {"U16", 16},        {"U32", 32},    {"U64", 64},    {"C64", 64},    {"F4", 4},
                       {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E4M3FNUZ", 8},
                       {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}};

const char *pt_dtype_name(enum pt_dtype dtype)
{
    return DTYPES[dtype].name;
}

size_t pt_dtype_bytes(enum pt_dtype dtype)
{
    return (DTYPES[dtype].bits + 7U) / 8;
}

int64_t pt_tensor_bytes(const struct pt_tensor *t)
{
    int64_t bits = DTYPES[t->dtype].bits;

    if (t->dims < 0 || t->dims > PT_DIMS_MAX)
        return -1;
    for (int32_t i = 0; i < t->dims; i++)
        if (t->dim[i] < 0 || __builtin_mul_overflow(bits, t->dim[i], &bits))
            return -1;
    return bits % 8 ? -1 : bits / 8;
}
