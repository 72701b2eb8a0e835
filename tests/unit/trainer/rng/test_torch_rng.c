/* test_torch_rng.c - the generator against numbers that PyTorch made. */
#include "../../../golden/torch/golden.h"
#include "common/cleanup.h"
#include "test.h"
#include "trainer/rng/torch_rng.h"

#include <string.h>
#include <zlib.h>

static uint32_t crc_of(const void *bytes, size_t len)
{
    return (uint32_t)crc32(0, bytes, (uInt)len);
}

static void test_known_words(void **state)
{
    struct torch_rng g;

    (void)state;
    /* The 10,000th output that the C++ standard demands of mt19937 under its default seed. */
    torch_rng_seed(&g, 5489);
    for (int i = 0; i < 9999; i++)
        torch_rng_u32(&g);
    assert_int_equal(torch_rng_u32(&g), 4123659995U);
}

static void test_high_seed_bits(void **state)
{
    struct torch_rng a;
    struct torch_rng b;

    (void)state;
    torch_rng_seed(&a, 7);
    torch_rng_seed(&b, 7 + (UINT64_C(3) << 32));
    assert_int_equal(torch_rng_u64(&a), torch_rng_u64(&b));
}

static void test_uniform(void **state)
{
    struct torch_rng g;
    float x[8];

    (void)state;
    torch_rng_seed(&g, 1);
    torch_rng_uniform(&g, -0.25, 0.75, x, 8);
    assert_memory_equal(x, golden_uniform_seed1, sizeof(x));
}

static void test_normal(void **state)
{
    static const struct {
        size_t n;
        uint32_t crc;
    } cases[] = {{15, GOLDEN_NORMAL_15},
                 {16, GOLDEN_NORMAL_16},
                 {17, GOLDEN_NORMAL_17},
                 {100003, GOLDEN_NORMAL_100003}};
    struct torch_rng g;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free float *x = malloc(cases[i].n * sizeof(*x));
        assert_non_null(x);
        torch_rng_seed(&g, 7);
        torch_rng_normal(&g, 0.1, 0.02, x, cases[i].n);
        assert_int_equal(crc_of(x, cases[i].n * sizeof(*x)), cases[i].crc);
    }
}

static void test_randperm(void **state)
{
    static const struct {
        size_t n;
        uint32_t crc;
    } cases[] = {{1, GOLDEN_RANDPERM_1}, {1000, GOLDEN_RANDPERM_1000}, {60000, GOLDEN_RANDPERM_60000}};
    struct torch_rng g;
    uint32_t ten[10];

    (void)state;
    torch_rng_seed(&g, 1);
    torch_rng_randperm(&g, ten, 10);
    assert_memory_equal(ten, golden_randperm_10, sizeof(ten));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free uint32_t *p = malloc(cases[i].n * sizeof(*p));
        assert_non_null(p);
        torch_rng_seed(&g, 5);
        torch_rng_randperm(&g, p, cases[i].n);
        assert_int_equal(crc_of(p, cases[i].n * sizeof(*p)), cases[i].crc);
    }
    /* None and one draw nothing. */
    struct torch_rng before = g;
    torch_rng_randperm(&g, ten, 0);
    torch_rng_randperm(&g, ten, 1);
    assert_int_equal(torch_rng_u32(&g), torch_rng_u32(&before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_words), cmocka_unit_test(test_high_seed_bits),
        cmocka_unit_test(test_uniform),     cmocka_unit_test(test_normal),
        cmocka_unit_test(test_randperm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
