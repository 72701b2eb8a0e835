/* fill.cu - one thread per element, in strides of the grid. */
#include "kernels/cuda/fill.h"

#include <cuda_runtime.h>

namespace
{

constexpr unsigned THREADS = 256;
constexpr size_t BLOCKS_MAX = 4096;

__global__ void fill(float *x, float value, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        x[i] = value;
}

} // namespace

int cuda_fill(float *x, float value, size_t n, void *stream, struct err *err)
{
    size_t blocks = (n + THREADS - 1) / THREADS;

    if (!n)
        return 0;
    fill<<<(unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX), THREADS, 0, (cudaStream_t)stream>>>(
        x, value, n);
    cudaError_t e = cudaGetLastError();
    return e ? err_set(err, ERR_FATAL, "fill: %s", cudaGetErrorString(e)) : 0;
}
