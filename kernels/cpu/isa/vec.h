/* vec.h - one vector of floats, as wide as this build's instruction set.
 *
 * VEC floats per vector; VEC_ROWS x two vectors is the largest block of sums that fits the registers. The
 * _n forms touch `n` floats only (0 <= n; more than VEC counts as VEC) and read the rest as 0.
 * The rules for NaN are the same in all three: vec_at_least(a, least) = a < least ? least : a keeps a's NaN.
 */
#ifndef TK_KERNELS_ISA_VEC_H
#define TK_KERNELS_ISA_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Four neighbouring floats, whatever the width: vec_sum4 gives vec_sum of each of four vectors, to the bit. */
typedef float vec_quad __attribute__((vector_size(16)));
typedef int32_t vec_quad_bits __attribute__((vector_size(16)));

#if defined(__AVX512F__)
#include "kernels/cpu/isa/vec_avx512.h"
#elif defined(__AVX2__)
#include "kernels/cpu/isa/vec_avx2.h"
#else
#include "kernels/cpu/isa/vec_plain.h"
#endif

enum { VEC_PANEL = 2 * VEC };

/* What compilers have for vectors of any width. */
typedef vec vec_unaligned __attribute__((aligned(4), may_alias));

static inline vec vec_zero(void)
{
    return (vec){0};
}
static inline vec vec_load(const float *p)
{
    return *(const vec_unaligned *)p;
}
static inline void vec_store(float *p, vec v)
{
    *(vec_unaligned *)p = v;
}
static inline vec vec_add(vec a, vec b)
{
    return a + b;
}

#if defined(__clang__)
#define UNROLL_ALL _Pragma("unroll")
#else
#define UNROLL_ALL _Pragma("GCC unroll 32")
#endif

#endif
