/* chance.cuh - numbers by chance that depend on where they are asked for, not on who asks: a hash of a key and a place. The
 * same on every device (kernels/cpu/dropout.c). */
#ifndef TK_KERNELS_CUDA_CHANCE_CUH
#define TK_KERNELS_CUDA_CHANCE_CUH

#include "kernels/cuda/grid.h"

namespace
{

/* A bijection of 64-bit words that spreads every bit: the finaliser of SplitMix64. */
__device__ inline uint64_t spread(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* A bijection of 32-bit words in which every bit of the result depends on all of x. */
__device__ inline uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

/* Of a key that `spread` made: the word at a place. */
__device__ inline uint32_t chance_at(uint64_t key, uint32_t place)
{
    return scramble(scramble(place + (uint32_t)key) ^ (uint32_t)(key >> 32));
}

} // namespace

#endif
