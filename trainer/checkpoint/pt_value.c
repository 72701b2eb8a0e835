/* pt_value.c - element sizes. */
#include "trainer/checkpoint/pt_value.h"

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
