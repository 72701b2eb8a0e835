/* test_reduce.c - sums in the order of the sources, to the bit, and ORs of bytes, at every width, length and offset. */
#include "test.h"

#include "collectives/reduce.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5, LEN = 150, BYTES = (LEN + 8) * 8 };

struct vectors {
    _Alignas(64) char byte[MOST][BYTES];
};

static uint32_t next(uint32_t *seed)
{
    return *seed = *seed * 1664525u + 1013904223u;
}

static void draw(struct vectors *v, enum reduce_type type, uint32_t seed)
{
    for (int k = 0; k < MOST; k++)
        for (size_t i = 0; i < BYTES / reduce_size(type); i++) {
            double x = ((double)(int32_t)next(&seed)) * (i % 3 ? 1.0 : 1e-6);
            if (type == REDUCE_F32)
                ((float *)(void *)v->byte[k])[i] = (float)x;
            else if (type == REDUCE_F64)
                ((double *)(void *)v->byte[k])[i] = x;
            else
                v->byte[k][i] = (char)(next(&seed) >> 24);
        }
}

static void or_up(const struct vectors *v, int n_src, size_t i, void *out)
{
    char all = 0;

    for (int k = 0; k < n_src; k++)
        all = (char)(all | v->byte[k][i]);
    memcpy(out, &all, 1);
}

/* Element i of all sources, added one after the other. */
static void add_up(const struct vectors *v, enum reduce_type type, int n_src, size_t i, void *out)
{
    float f = ((const float *)(const void *)v->byte[0])[i];
    double d = 0;

    for (int k = 1; type == REDUCE_F32 && k < n_src; k++)
        f += ((const float *)(const void *)v->byte[k])[i];
    for (int k = 0; type == REDUCE_F64 && k < n_src; k++) {
        double x = ((const double *)(const void *)v->byte[k])[i];
        d = k ? d + x : x;
    }
    if (type == REDUCE_F32)
        memcpy(out, &f, sizeof(f));
    else
        memcpy(out, &d, sizeof(d));
}

static void check(enum reduce_isa isa, enum reduce_type type, int n_src, int n_dst, size_t from, size_t n)
{
    const size_t size = reduce_size(type);
    static struct vectors before, after;
    void *dst[MOST];
    const void *src[MOST];

    draw(&before, type, (uint32_t)(n * 31 + from * 7 + (size_t)n_src));
    after = before;
    for (int k = 0; k < MOST; k++) {
        src[k] = after.byte[k] + from * size;
        dst[k] = after.byte[k] + from * size;
    }
    reduce_vectors_by(isa, type, dst, n_dst, src, n_src, n);
    for (int k = 0; k < MOST; k++)
        for (size_t i = 0; i < BYTES / size; i++) {
            char want[8];
            memcpy(want, before.byte[k] + i * size, size);
            if (k < n_dst && i >= from && i < from + n && type == REDUCE_OR)
                or_up(&before, n_src, i, want);
            else if (k < n_dst && i >= from && i < from + n)
                add_up(&before, type, n_src, i, want);
            if (memcmp(want, after.byte[k] + i * size, size) != 0)
                fail_msg("isa %d, type %d, %d to %d, %zu from %zu: vector %d, element %zu", (int)isa,
                         (int)type, n_src, n_dst, n, from, k, i);
        }
}

static void sums_are_those_of_a_loop(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 7, 8, 15, 16, 17, 33, 64, 149};

    for (enum reduce_isa isa = REDUCE_PLAIN; isa <= REDUCE_AVX512; isa++)
        for (int type = REDUCE_F32; type <= REDUCE_OR; type++)
            for (int n_src = 1; n_src <= MOST; n_src++)
                for (int n_dst = 1; n_dst <= n_src; n_dst++)
                    for (size_t from = 0; from < 4; from++)
                        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
                            if (reduce_isa_supported(isa))
                                check(isa, (enum reduce_type)type, n_src, n_dst, from, lengths[l]);
}

/* The widest is what is taken, and somewhere else than the sources is as good. */
static void to_another_place(void **state)
{
    (void)state;
    const float a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
    float c[3] = {0};

    reduce_vectors(REDUCE_F32, (void *const[]){c}, 1, (const void *const[]){a, b}, 2, 3);
    assert_true(c[0] == 11 && c[1] == 22 && c[2] == 33);
    reduce_vectors(REDUCE_F32, (void *const[]){c}, 1, (const void *const[]){a}, 1, 2);
    assert_true(c[0] == 1 && c[1] == 2 && c[2] == 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_a_loop),
        cmocka_unit_test(to_another_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
