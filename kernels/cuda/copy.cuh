/* copy.cuh - 16 bytes at a time from memory into shared memory, while the block goes on (PTX ISA, "cp.async"; Ampere and
 * later): what a thread has asked for is a group with copy_commit, and there behind copy_wait. Then __syncthreads, since others
 * asked for the rest.
 *
 * The emulation copies when it is waited for, and not before; a kernel that ends without having waited is broken.
 */
#ifndef TK_KERNELS_CUDA_COPY_CUH
#define TK_KERNELS_CUDA_COPY_CUH

#include "kernels/cuda/grid.h"

namespace
{

#ifdef __CUDACC__

/* `from` is not read where it is not wanted: zeros then. Both at multiples of 16. */
__device__ inline void copy16(void *to, const void *from, bool wanted)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = wanted ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

__device__ inline void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All groups but the newest LEFT are there. */
template <int LEFT> __device__ inline void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

#else

inline void copy16(void *to, const void *from, bool wanted)
{
    emulate_copy16(to, from, wanted);
}

inline void copy_commit()
{
    emulate_copy_commit();
}

template <int LEFT> inline void copy_wait()
{
    emulate_copy_wait(LEFT);
}

#endif

} // namespace

#endif
