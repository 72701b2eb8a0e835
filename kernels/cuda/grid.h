/* grid.h - the words that kernels are written in, and how they are queued.
 *
 * nvcc compiles them for the GPU. Any other compiler builds them for the CPU, as tests do (tests/fakes/cuda/emulate.h):
 * the same source, run thread by thread, so every index is checked without a device. For that they keep to what stands
 * here: SHARED for shared memory, LAUNCH for a launch, and the words of CUDA that emulate.h lists. What needs more shared
 * memory than 48 KB says how much at the launch: SHARED_BY_LAUNCH and LAUNCH_SHARED.
 */
#ifndef TK_KERNELS_CUDA_GRID_H
#define TK_KERNELS_CUDA_GRID_H

#include "kernels/cuda/cuda.h"

#include <string.h>

#ifdef __CUDACC__

#include <cuda_runtime.h>

/* Before a loop over an array that has to stay in registers. */
#define UNROLL _Pragma("unroll")
/* Before one whose reads shall be under way so many at a time. */
#define UNROLL_4 _Pragma("unroll 4")
#define UNROLL_8 _Pragma("unroll 8")
/* type name[n] that the block's threads share */
#define SHARED(type, name, n) __shared__ __align__(16) type name[n]
#define LAUNCH(c, blocks, threads, kernel, ...)                                                              \
    do {                                                                                                     \
        kernel<<<(blocks), (threads), 0, (c)->stream>>>(__VA_ARGS__);                                        \
        cuda_note((c), cudaPeekAtLastError(), #kernel);                                                      \
    } while (0)
#define SHARED_BY_LAUNCH(name) extern __shared__ __align__(16) char name[]
#define LAUNCH_SHARED(c, blocks, threads, bytes, kernel, ...)                                                \
    do {                                                                                                     \
        cuda_note((c),                                                                                       \
                  cudaFuncSetAttribute((const void *)(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,  \
                                       (int)(bytes)),                                                        \
                  #kernel);                                                                                  \
        kernel<<<(blocks), (threads), (bytes), (c)->stream>>>(__VA_ARGS__);                                  \
        cuda_note((c), cudaPeekAtLastError(), #kernel);                                                      \
    } while (0)

#else

#include "emulate.h"

#define UNROLL
#define UNROLL_4
#define UNROLL_8
#define LAUNCH(c, blocks, threads, kernel, ...) LAUNCH_SHARED(c, blocks, threads, 0, kernel, __VA_ARGS__)
#define LAUNCH_SHARED(c, blocks, threads, bytes, kernel, ...)                                                \
    do {                                                                                                     \
        emulate_launch((c)->stream, (blocks), (threads), (bytes), (kernel), __VA_ARGS__);                    \
        cuda_note((c), cudaPeekAtLastError(), #kernel);                                                      \
    } while (0)

#endif

namespace
{

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffU;
constexpr int EACH_THREADS = 256;

__host__ __device__ inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

__host__ __device__ inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

__host__ __device__ inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Blocks for n elements, one per thread. n is below 2^31 in every tensor, flat buffers may be longer. */
inline unsigned blocks_for(int64_t n, int threads)
{
    int64_t blocks = ceil_div(n, threads);
    return (unsigned)(blocks < 1 << 30 ? blocks : 1 << 30);
}

/* This thread's first element, and the way to its next, where a grid may be smaller than its work. */
__device__ inline int64_t each_first()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline int64_t each_stride()
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* The sum over a warp, on all its lanes, in the same order whoever asks. */
template <class T> __device__ inline T warp_sum(T v)
{
    for (int d = WARP / 2; d > 0; d /= 2)
        v += __shfl_xor_sync(ALL_LANES, v, d);
    return v;
}

/* What op makes of the values of a block's THREADS threads (a power of two), on all of them, in the same order whoever asks. mine:
 * shared memory for THREADS values. */
template <int THREADS, class T, class Op> __device__ inline T block_reduce(T *mine, T own, Op op)
{
    const int t = (int)threadIdx.x;

    mine[t] = own;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            mine[t] = op(mine[t], mine[t + half]);
        __syncthreads();
    }
    return mine[0];
}

struct plus {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

} // namespace

#endif
