/* rows.cuh - run a kernel over rows, a warp per row. */
#ifndef TK_KERNELS_CUDA_ROWS_CUH
#define TK_KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda/grid.h"

namespace
{

constexpr int ROW_THREADS = 128;
constexpr int ROW_WARPS = ROW_THREADS / WARP;

inline unsigned row_blocks(int rows)
{
    return blocks_for(rows, ROW_WARPS);
}

__device__ inline int lane()
{
    return (int)threadIdx.x % WARP;
}

__device__ inline int64_t row_first()
{
    return (int64_t)blockIdx.x * ROW_WARPS + (int)threadIdx.x / WARP;
}

__device__ inline int64_t row_stride()
{
    return (int64_t)gridDim.x * ROW_WARPS;
}

/* Of n >= 1 values, on every lane. A NaN among them may be passed over. */
__device__ inline float warp_largest(const float *x, int n)
{
    float top = x[0];
    for (int c = lane(); c < n; c += WARP)
        top = x[c] > top ? x[c] : top;
    for (int d = WARP / 2; d > 0; d /= 2) {
        float other = __shfl_xor_sync(ALL_LANES, top, d);
        top = other > top ? other : top;
    }
    return top;
}

} // namespace

#endif
