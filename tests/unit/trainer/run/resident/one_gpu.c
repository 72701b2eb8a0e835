/* one_gpu.c - the functions of CUDA's runtime that nccl-bench calls and the emulated one lacks: there is one GPU. */
#include <cuda_runtime_api.h>

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = 1;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *ret)
{
    return cudaEventCreateWithFlags(ret, 0);
}

cudaError_t cudaEventElapsedTime(float *ret, cudaEvent_t from, cudaEvent_t to)
{
    (void)from;
    (void)to;
    *ret = 1;
    return cudaSuccess;
}
