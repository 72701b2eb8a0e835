/* begin.cuh - begin an optimiser step on the GPU, for the kernels that stand first in one. */
#ifndef TK_KERNELS_CUDA_BEGIN_CUH
#define TK_KERNELS_CUDA_BEGIN_CUH

#include "kernels/cuda/grid.h"

namespace
{

__device__ inline const step_order &step_order_of(const queued_begin &b)
{
    return b.orders[b.state->steps % b.ring];
}

/* By one thread. What other threads of the kernel read meanwhile, order and number of steps, stays as it is. */
__device__ inline void step_begin(const queued_begin &b)
{
    b.state->now = step_order_of(b);
    *b.own = queued_loss{0, 0, -1};
    for (int i = 0; i < QUEUED_FLAGS && b.flags; i++)
        b.flags[i] = (float)(b.state->now.flags >> i & 1);
}

} // namespace

#endif
