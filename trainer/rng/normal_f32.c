/* normal_f32.c - the Cephes polynomials for log, sine and cosine in float32.
 *
 * PyTorch computes normal numbers with these polynomials, not with libm, and its compiler fused some products
 * with sums. Each fmaf below is one of these, found by comparing bits. All other operations round separately,
 * so this file is compiled with -ffp-contract=off.
 */
#include "trainer/rng/normal_f32.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { HALF = NORMAL_F32_BLOCK / 2 };

#define INLINE static inline __attribute__((always_inline))

/* Natural logarithm of 2^-24 <= x <= 1. */
INLINE float log_f32(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    int32_t exponent = (int32_t)(bits >> 23) - 126;
    bits = (bits & 0x007fffffU) | 0x3f000000U;
    float m;
    memcpy(&m, &bits, sizeof(m)); /* x = m 2^exponent, 0.5 <= m < 1 */
    /* Centre m on 1: if it is below sqrt(1/2), use 2m and decrement the exponent. */
    int32_t small = m < 0.707106781186547524F;
    float e = (float)(exponent - small);
    m = (m - 1.0F) + (small ? m : 0.0F);
    float z = m * m;
    float y = 7.0376836292E-2F;
    y = fmaf(y, m, -1.1514610310E-1F);
    y = fmaf(y, m, 1.1676998740E-1F);
    y = fmaf(y, m, -1.2420140846E-1F);
    y = fmaf(y, m, 1.4249322787E-1F);
    y = fmaf(y, m, -1.6668057665E-1F);
    y = fmaf(y, m, 2.0000714765E-1F);
    y = fmaf(y, m, -2.4999993993E-1F);
    y = fmaf(y, m, 3.3333331174E-1F);
    /* log 2 in two parts, so that the large one times e is exact. */
    y = fmaf(y * m, z, e * -2.12194440E-4F);
    y = fmaf(-z, 0.5F, y);
    return fmaf(e, 0.693359375F, m + y);
}

/* Sine and cosine of 0 <= x <= 2 pi. */
INLINE void sincos_f32(float x, float *ret_sin, float *ret_cos)
{
    int32_t octant = ((int32_t)(x * 1.27323954473516F) + 1) & ~1;
    float turns = (float)octant;
    /* Subtract turns * pi/4 in three parts, of which the first two are exact. */
    x = fmaf(turns, -0.78515625F, x);
    x = fmaf(turns, -2.4187564849853515625E-4F, x);
    x = fmaf(turns, -3.77489497744594108E-8F, x);
    float z = x * x;
    float c = 2.443315711809948E-5F;
    c = fmaf(c, z, -1.388731625493765E-3F);
    c = fmaf(c, z, 4.166664568298827E-2F);
    c = fmaf(c * z, z, -(z * 0.5F)) + 1.0F;
    float s = -1.9515295891E-4F;
    s = fmaf(s, z, 8.3321608736E-3F);
    s = fmaf(s, z, -1.6666654611E-1F);
    s = fmaf(s * z, x, x);
    float sine = (octant & 2) ? c : s;
    float cosine = (octant & 2) ? s : c;
    *ret_sin = (octant & 4) ? -sine : sine;
    *ret_cos = ((octant - 2) & 4) ? cosine : -cosine;
}

INLINE void blocks(float *x, size_t n, float mean, float std)
{
    for (size_t i = 0; i < n; i += NORMAL_F32_BLOCK) {
        for (size_t j = i; j < i + HALF; j++) {
            float s;
            float c;
            float radius = sqrtf(-2.0F * log_f32(1.0F - x[j]));
            sincos_f32((float)(2.0 * M_PI) * x[j + HALF], &s, &c);
            x[j] = fmaf(radius * c, std, mean);
            x[j + HALF] = fmaf(radius * s, std, mean);
        }
    }
}

#if defined(__x86_64__)
/* The same operations, with fmaf as an instruction instead of a call. */
__attribute__((target("avx2,fma"))) static void blocks_fma(float *x, size_t n, float mean, float std)
{
    blocks(x, n, mean, std);
}
#endif

void normal_f32_blocks(float *x, size_t n, float mean, float std)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        blocks_fma(x, n, mean, std);
        return;
    }
#endif
    blocks(x, n, mean, std);
}
