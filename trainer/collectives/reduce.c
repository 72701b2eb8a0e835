/* reduce.c - block-wise sums: a block stays in the first-level cache while every source passes over it. */
#include "trainer/collectives/reduce.h"

#include <string.h>

enum { BLOCK_BYTES = 4096 };

static void add_f32(float *restrict acc, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += x[i];
}

static void add_f64(double *restrict acc, const double *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += x[i];
}

void reduce_vectors(enum reduce_type type, void *const *dst, int n_dst, const void *const *src, int n_src,
                    size_t n)
{
    _Alignas(64) unsigned char acc[BLOCK_BYTES];
    const size_t bytes = n_src == 1 && n_dst == 1 && dst[0] == src[0] ? 0 : n * reduce_size(type);

    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        size_t len = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
        memcpy(acc, (const char *)src[0] + at, len);
        for (int s = 1; s < n_src; s++) {
            const void *x = (const char *)src[s] + at;
            if (type == REDUCE_F32)
                add_f32((float *)(void *)acc, x, len / sizeof(float));
            else
                add_f64((double *)(void *)acc, x, len / sizeof(double));
        }
        for (int d = 0; d < n_dst; d++)
            memcpy((char *)dst[d] + at, acc, len);
    }
}
