/* element.cuh - what activations are made of (enum element), as kernels see it: read as f32, computed in f32, rounded once
 * when they are written.
 *
 * An operation is a template of its element, and ELEMENT_CALL picks the one of the context:
 *
 *     template <class E> __global__ void op_elements(E *out, const E *in, ...)   out[i] = (E)f(in[i]);
 *     template <class E> void run_forward(struct cuda *c, void *out, const void *in, ...)
 *     void cuda_op_forward(struct kctx *ctx, void *out, const void *in, ...)   ELEMENT_CALL(c, run_forward, c, out, in, ...);
 *
 * Numerics: f32 to bf16 goes to the nearest, ties to even, as the trainer's own conversion of files does. What is not a number
 *           stays so, quiet, but its bits are not the file's: it is 0x7fff.
 */
#ifndef TK_KERNELS_CUDA_ELEMENT_CUH
#define TK_KERNELS_CUDA_ELEMENT_CUH

#include "kernels/cuda/grid.h"

#define ELEMENT_CALL(c, fn, ...)                                                                             \
    ((c)->ctx.element == ELEMENT_BF16 ? fn<bf16>(__VA_ARGS__) : fn<float>(__VA_ARGS__))

namespace
{

/* The upper half of an f32, which it reads as. */
struct bf16 {
    uint16_t bits;

    bf16() = default;
    __device__ explicit bf16(float x)
    {
#ifdef __CUDACC__
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
        const uint32_t all = bits_of(x);
        /* that instruction knows one NaN, without a sign */
        bits = isnan(x) ? 0x7fff : (uint16_t)((all + 0x7fffU + (all >> 16 & 1U)) >> 16);
#endif
    }
    __device__ operator float() const
    {
        return float_of((uint32_t)bits << 16);
    }
};

/* What few numbers are added up in: exact enough for what the sum is rounded to. */
template <class E> struct sum_of_few {
    typedef double type;
};
template <> struct sum_of_few<bf16> {
    typedef float type; /* 24 bits where an element has 8; f64 is converted to at an eighth of the pace */
};

/* 2^x in one instruction; what is too small to be normal is 0. For what is rounded to bf16. */
__device__ inline float quick_exp2(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

/* a / b within two units in the last place; 0 where b is above 2^126. */
__device__ inline float quick_divide(float a, float b)
{
#ifdef __CUDACC__
    return __fdividef(a, b);
#else
    return b > 8.507059e37F ? 0.0F : a / b;
#endif
}

} // namespace

#endif
