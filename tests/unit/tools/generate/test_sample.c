/* test_sample.c - which class a draw gives: by its share, among the likeliest, the same for the same seed. */
#include "test.h"

#include "tools/generate/sample.h"

#include <math.h>

static void without_heat_the_likeliest(void **state)
{
    (void)state;
    const float logits[] = {1, 3, -2, 3, 2};
    const struct sample_options o = {.temperature = 0};
    struct torch_rng g, same;

    torch_rng_seed(&g, 1);
    torch_rng_seed(&same, 1);
    assert_int_equal(sample(&o, logits, 5, NULL, &g), 1);
    assert_int_equal(torch_rng_u32(&g), torch_rng_u32(&same));
}

/* A share of 2^20 draws is within six standard deviations of what it should be; the seed is fixed. */
static void shares_are_softmaxs(void **state)
{
    (void)state;
    static const struct {
        double temperature;
        int top_k;
        double weight[5];
    } cases[] = {
        {1, 0, {8, 1, 4, 2, 1}}, {0.5, 0, {64, 1, 16, 4, 1}},
        {1, 2, {8, 0, 4, 0, 0}}, {1, 4, {8, 1, 4, 2, 1}}, /* two share the fourth place */
        {1, 5, {8, 1, 4, 2, 1}}, {1, 9, {8, 1, 4, 2, 1}},
    };
    const double weights[] = {8, 1, 4, 2, 1};
    enum { DRAWS = 1 << 18 };

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct sample_options o = {.temperature = cases[c].temperature, .top_k = cases[c].top_k};
        float logits[5], heap[9];
        double sum = 0;
        int count[5] = {0};
        struct torch_rng g;
        torch_rng_seed(&g, 7 + c);
        for (int i = 0; i < 5; i++) {
            logits[i] = (float)log(weights[i]);
            sum += cases[c].weight[i];
        }
        for (int i = 0; i < DRAWS; i++)
            count[sample(&o, logits, 5, heap, &g)]++;
        for (int i = 0; i < 5; i++) {
            double p = cases[c].weight[i] / sum;
            double off = fabs(count[i] - DRAWS * p);
            if (off > 6 * sqrt(DRAWS * p * (1 - p)))
                fail_msg("case %zu, class %d: %d of %d, expected about %.0f", c, i, count[i], DRAWS,
                         DRAWS * p);
        }
    }
}

/* The k largest of many, wherever they stand. */
static void the_likeliest_of_many(void **state)
{
    (void)state;
    enum { CLASSES = 1000, K = 17 };
    static float logits[CLASSES];
    float heap[K];
    struct torch_rng g;
    const struct sample_options o = {.temperature = 1000, .top_k = K};
    int seen[CLASSES] = {0}, different = 0;

    for (int i = 0; i < CLASSES; i++)
        logits[i] = (float)(i * 389 % CLASSES); /* each of 0..999 once */
    torch_rng_seed(&g, 3);
    for (int i = 0; i < 20000; i++) {
        int got = sample(&o, logits, CLASSES, heap, &g);
        assert_true(logits[got] >= CLASSES - K);
        different += !seen[got]++;
    }
    assert_int_equal(different, K);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_heat_the_likeliest),
        cmocka_unit_test(shares_are_softmaxs),
        cmocka_unit_test(the_likeliest_of_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
