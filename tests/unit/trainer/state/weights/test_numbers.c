/* test_numbers.c - short floats: every one there is, and rounding at its edges. */
#include "test.h"

#include "trainer/state/weights/numbers.h"

#include <math.h>
#include <string.h>

/* All 65536, there and back; and between two neighbours to the even one, above to the upper one. */
static void all_short_floats(void **state)
{
    (void)state;
    static const enum pt_dtype types[] = {PT_BF16, PT_F16};

    for (int t = 0; t < 2; t++) {
        for (uint32_t i = 0; i < 65536; i++) {
            uint16_t in = (uint16_t)i, up = (uint16_t)(i + 1), back;
            float f, g;
            numbers_to_f32(&in, types[t], 0, 1, &f);
            numbers_from_f32(&f, 1, types[t], &back);
            if (isnan(f)) {
                numbers_to_f32(&back, types[t], 0, 1, &g);
                assert_true(isnan(g));
                continue;
            }
            assert_int_equal(back, in);
            numbers_to_f32(&up, types[t], 0, 1, &g);
            if (isinf(f) || !isfinite(g) || (uint16_t)(i & 0x7fff) == 0x7fff)
                continue;
            float middle = (float)(((double)f + (double)g) / 2);
            numbers_from_f32(&middle, 1, types[t], &back);
            assert_int_equal(back, i & 1 ? up : in);
            float above = nextafterf(middle, g);
            numbers_from_f32(&above, 1, types[t], &back);
            assert_int_equal(back, up);
        }
    }
}

static void known_values(void **state)
{
    (void)state;
    static const struct {
        enum pt_dtype type;
        float f;
        uint16_t bits;
    } want[] = {{PT_F16, 1, 0x3c00},          {PT_F16, -2, 0xc000},        {PT_F16, 65504, 0x7bff},
                {PT_F16, 65519.996f, 0x7bff}, {PT_F16, 65520, 0x7c00},     {PT_F16, 0x1p-24f, 1},
                {PT_F16, 0x1p-25f, 0},        {PT_F16, 0x1.8p-25f, 1},     {PT_F16, 0x1p-14f, 0x400},
                {PT_F16, -0.0f, 0x8000},      {PT_F16, -INFINITY, 0xfc00}, {PT_BF16, 1, 0x3f80},
                {PT_BF16, 3.4e38f, 0x7f80},   {PT_BF16, -0.0f, 0x8000},    {PT_BF16, 0x1p-133f, 1}};

    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        uint16_t bits;
        numbers_from_f32(&want[i].f, 1, want[i].type, &bits);
        if (bits != want[i].bits)
            fail_msg("%g: 0x%04x, expected 0x%04x", (double)want[i].f, bits, want[i].bits);
    }
}

static void tensors_are_compared_by_value(void **state)
{
    (void)state;
    const double d[] = {1, 2, 0.5};
    const float f[] = {1, 2, 0.5f};
    const uint16_t h[] = {0x3c00, 0x4000, 0x3801};
    const struct pt_tensor a = {.data = d, .dtype = PT_F64, .dims = 1, .dim = {3}};
    const struct pt_tensor b = {.data = f, .dtype = PT_F32, .dims = 1, .dim = {3}};
    struct pt_tensor c = {.data = h, .dtype = PT_F16, .dims = 1, .dim = {3}};

    assert_true(numbers_equal(&a, &b));
    assert_false(numbers_equal(&a, &c));
    c.dim[0] = 2;
    assert_false(numbers_equal(&a, &c));
}

/* Bytes are no halves: read as such they would end behind the tensor. */
static void integers_equal_no_floats(void **state)
{
    (void)state;
    static const uint8_t bytes[2 * 16];
    static const float f[16];
    const struct pt_tensor a = {.data = f, .dtype = PT_F32, .dims = 1, .dim = {16}};
    const struct pt_tensor b = {.data = bytes, .dtype = PT_BOOL8, .dims = 1, .dim = {16}};

    assert_false(numbers_equal(&a, &b));
    assert_false(numbers_equal(&b, &a));
    assert_false(numbers_equal(&b, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_short_floats),
        cmocka_unit_test(known_values),
        cmocka_unit_test(tensors_are_compared_by_value),
        cmocka_unit_test(integers_equal_no_floats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
