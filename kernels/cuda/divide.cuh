/* divide.cuh - division by a number that a whole launch shares: a product and a shift instead of twenty instructions
 * (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994, figure 4.1).
 */
#ifndef TK_KERNELS_CUDA_DIVIDE_CUH
#define TK_KERNELS_CUDA_DIVIDE_CUH

#include "kernels/cuda/grid.h"

namespace
{

/* A number from 1, which reads as an int. It divides what is not negative. */
struct divisor {
    int d, shift; /* 2^shift is the power of two at or above d */
    uint32_t factor;

    divisor(int n) : d(n), shift(0)
    {
        while ((int64_t)1 << shift < d)
            shift++;
        factor = (uint32_t)(((((uint64_t)1 << shift) - (uint64_t)d) << 32) / (uint64_t)d + 1);
    }
    __host__ __device__ operator int() const
    {
        return d;
    }
};

__device__ inline int operator/(int n, const divisor &by)
{
    const uint32_t high = (uint32_t)((uint64_t)(uint32_t)n * by.factor >> 32);
    return (int)((high + (uint32_t)n) >> by.shift);
}

__device__ inline int operator%(int n, const divisor &by)
{
    return n - n / by * by.d;
}

} // namespace

#endif
