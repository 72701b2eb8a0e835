/* numbers.c - convert f16, bf16 and f64 elements to f32. */
#include "trainer/state/weights/numbers.h"

#include <string.h>

bool numbers_are_floats(enum pt_dtype dtype)
{
    return dtype == PT_F32 || dtype == PT_F64 || dtype == PT_BF16 || dtype == PT_F16;
}

static float f32_of(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 0x1f;
    uint32_t fraction = h & 0x3ff;

    if (exponent == 31)
        return f32_of(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return f32_of(sign | (exponent + 112) << 23 | fraction << 13);
    return f32_of(sign | bits_of((float)fraction * 0x1p-24f)); /* zero or subnormal */
}

void numbers_to_f32(const void *data, enum pt_dtype dtype, size_t first, size_t n, float *out)
{
    const uint8_t *p = (const uint8_t *)data + first * pt_dtype_bytes(dtype);
    uint16_t h;
    double d;

    if (dtype == PT_F32) {
        memcpy(out, p, n * sizeof(*out));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (dtype == PT_F64) {
            memcpy(&d, p + i * sizeof(d), sizeof(d));
            out[i] = (float)d;
            continue;
        }
        memcpy(&h, p + i * sizeof(h), sizeof(h));
        out[i] = dtype == PT_BF16 ? f32_of((uint32_t)h << 16) : from_f16(h);
    }
}

bool numbers_equal(const struct pt_tensor *a, const struct pt_tensor *b)
{
    enum { PIECE = 1024 };
    float x[PIECE], y[PIECE];
    size_t len = (size_t)pt_tensor_bytes(a) / pt_dtype_bytes(a->dtype);

    if (!numbers_are_floats(a->dtype) || !numbers_are_floats(b->dtype) ||
        len != (size_t)pt_tensor_bytes(b) / pt_dtype_bytes(b->dtype))
        return false;
    for (size_t first = 0; first < len; first += PIECE) {
        size_t n = len - first < PIECE ? len - first : PIECE;
        numbers_to_f32(a->data, a->dtype, first, n, x);
        numbers_to_f32(b->data, b->dtype, first, n, y);
        for (size_t i = 0; i < n; i++)
            if (x[i] != y[i])
                return false;
    }
    return true;
}
