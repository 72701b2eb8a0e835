/* test_init.c - whole modules' initial weights, and the split that follows them, against PyTorch's. */
#include "../../../golden/torch/golden.h"
#include "common/cleanup.h"
#include "test.h"
#include "trainer/data/split.h"
#include "trainer/rng/init.h"

#include <string.h>
#include <zlib.h>

enum { MNIST_CNN_PARAMETERS = 93322, ITEMS = 60000, FIRST = 48000 };

static uint32_t crc_of(const void *bytes, size_t len)
{
    return (uint32_t)crc32(0, bytes, (uInt)len);
}

static const struct layer {
    size_t in;
    size_t out;
    size_t k; /* 0: linear */
} mnist_cnn[] = {{1, 32, 3}, {32, 64, 3}, {64, 64, 3}, {576, 64, 0}, {64, 10, 0}};

static size_t build(struct torch_rng *g, float *flat)
{
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_LEN(mnist_cnn); i++) {
        const struct layer *l = &mnist_cnn[i];
        size_t weights = l->in * l->out * (l->k ? l->k * l->k : 1);
        init_default(g, flat + at, weights, flat + at + weights, l->out, weights / l->out);
        at += weights + l->out;
    }
    return at;
}

static void test_module_then_split(void **state)
{
    static const struct {
        uint64_t seed;
        uint32_t weights, first, second;
    } cases[] = {
        {1, GOLDEN_MNIST_CNN_SEED1, GOLDEN_SPLIT_FIRST_SEED1, GOLDEN_SPLIT_SECOND_SEED1},
        {2, GOLDEN_MNIST_CNN_SEED2, GOLDEN_SPLIT_FIRST_SEED2, GOLDEN_SPLIT_SECOND_SEED2},
        {3, GOLDEN_MNIST_CNN_SEED3, GOLDEN_SPLIT_FIRST_SEED3, GOLDEN_SPLIT_SECOND_SEED3},
    };
    cleanup_free float *flat = malloc(MNIST_CNN_PARAMETERS * sizeof(*flat));
    cleanup_free uint32_t *order = malloc(ITEMS * sizeof(*order));

    (void)state;
    assert_non_null(flat);
    assert_non_null(order);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct torch_rng g;
        struct split s;
        torch_rng_seed(&g, cases[i].seed);
        assert_int_equal(build(&g, flat), MNIST_CNN_PARAMETERS);
        assert_int_equal(crc_of(flat, MNIST_CNN_PARAMETERS * sizeof(*flat)), cases[i].weights);
        split_random(&g, FIRST, ITEMS - FIRST, order, &s);
        assert_int_equal(s.first_items, FIRST);
        assert_int_equal(s.second_items, ITEMS - FIRST);
        assert_int_equal(crc_of(s.first, FIRST * sizeof(*s.first)), cases[i].first);
        assert_int_equal(crc_of(s.second, (ITEMS - FIRST) * sizeof(*s.second)), cases[i].second);
    }
}

static void test_linear_values(void **state)
{
    struct torch_rng g;
    float flat[8];

    (void)state;
    torch_rng_seed(&g, 1);
    init_default(&g, flat, 6, flat + 6, 2, 3);
    assert_memory_equal(flat, golden_linear_3_2_seed1, sizeof(flat));
}

static void test_no_bias_and_groups(void **state)
{
    enum { LINEAR = 3 * 2, CONV = 6 * 2 * 3 * 5, BIAS = 6 };
    struct torch_rng g;
    float flat[LINEAR + CONV + BIAS];

    (void)state;
    torch_rng_seed(&g, 1);
    init_default(&g, flat, LINEAR, NULL, 2, 3);
    init_default(&g, flat + LINEAR, CONV, flat + LINEAR + CONV, BIAS, CONV / BIAS);
    assert_int_equal(crc_of(flat, sizeof(flat)), GOLDEN_NOBIAS_THEN_GROUPED);
}

static void test_no_inputs(void **state)
{
    struct torch_rng g;
    struct torch_rng before;
    float bias[2] = {5, 6};

    (void)state;
    torch_rng_seed(&g, 1);
    before = g;
    init_default(&g, NULL, 0, bias, 2, 0);
    assert_true(bias[0] == 5 && bias[1] == 6);
    assert_int_equal(torch_rng_u32(&g), torch_rng_u32(&before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_module_then_split),
        cmocka_unit_test(test_linear_values),
        cmocka_unit_test(test_no_bias_and_groups),
        cmocka_unit_test(test_no_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
