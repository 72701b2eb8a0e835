/* test_numbers.c - every short float there is, and comparing tensors by their numbers. */
#include "test.h"

#include "trainer/state/weights/numbers.h"

#include <math.h>

/* What the bits of a format with so many bits of exponent and fraction mean. */
static double meaning(uint32_t bits, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1, all = (1 << exponent_bits) - 1;
    const int exponent = (int)(bits >> fraction_bits) & all;
    const double fraction = ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
    const double sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1;

    if (exponent == all)
        return fraction > 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias));
}

static void all_short_floats(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++)
        for (int half = 0; half < 2; half++) {
            const uint16_t in = (uint16_t)i;
            const double want = half ? meaning(i, 5, 10) : meaning(i, 8, 7);
            float f;
            numbers_to_f32(&in, half ? PT_F16 : PT_BF16, 0, 1, &f);
            if (isnan(want) ? !isnan(f) : (double)f != want || !signbit(f) != !signbit(want))
                fail_msg("0x%04x: %g, expected %g", i, (double)f, want);
        }
}

static void long_floats_are_rounded(void **state)
{
    (void)state;
    const double in[] = {0.1, 1e300, -0.0, 0x1.000001p0};
    float out[4];

    numbers_to_f32(in, PT_F64, 0, 4, out);
    for (int i = 0; i < 4; i++)
        assert_true(out[i] == (float)in[i] && !signbit(out[i]) == !signbit(in[i]));
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
        cmocka_unit_test(long_floats_are_rounded),
        cmocka_unit_test(tensors_are_compared_by_value),
        cmocka_unit_test(integers_equal_no_floats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
