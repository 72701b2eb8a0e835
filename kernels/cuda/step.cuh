/* step.cuh - begin and end an optimiser step on the GPU, and gather its samples. */
#ifndef TK_KERNELS_CUDA_STEP_CUH
#define TK_KERNELS_CUDA_STEP_CUH

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

/* The place of a step's first sample: of `begin`, or *first. Its order lies in the process's memory, which a GPU reads in a microsecond
 * or two: once per block. Block 0 also begins the step. */
__device__ inline int64_t gather_first(const queued_begin &begin, const int64_t *first)
{
    SHARED(int64_t, block_first, 1);

    if (threadIdx.x == 0)
        *block_first = begin.state ? step_order_of(begin).first : *first;
    if (begin.state && blockIdx.x == 0 && threadIdx.x == 0)
        step_begin(begin);
    __syncthreads();
    return *block_first;
}

/* The grid's threads gather n elements of samples from place0 on. */
__device__ inline void gather_from(const gather &g, const gather_batch &to, const uint32_t *items,
                                   const uint32_t *order, int64_t place0, int64_t n)
{
    const int64_t len = (int64_t)g.len;

    for (int64_t i = each_first(); i < n; i += each_stride()) {
        const int64_t r = i / len;
        const int64_t at = i % len;
        const uint32_t place = order ? order[place0 + r] : (uint32_t)(place0 + r);
        const int64_t item = items ? items[place] : place;
        const int64_t from = item * len + at;
        to.x[i] = g.bytes ? g.table[at % g.stats * 256 + g.bytes[from]] : g.floats[from];
        if (at != 0)
            continue;
        to.samples[r] = place;
        if (g.labels)
            to.labels[r] = g.labels[item];
        for (int v = 0; v < g.value_len; v++)
            to.values[r * g.value_len + v] = g.values[item * g.value_len + v];
    }
}

/* By one thread. */
__device__ inline void step_end_of(step_state *state, const queued_loss *own, int rows, const float *loss,
                                   const queued_norm *norm, const float *flags, step_record *records,
                                   int ring)
{
    struct step_record r;
    r.norm = norm ? norm->norm : NAN;
    r.loss = *loss;
    r.own = (float)(own->sum / rows);
    r.halted = state->halted || !isfinite(r.loss);
    r.flags = 0;
    for (int i = 0; i < QUEUED_FLAGS && flags; i++)
        r.flags |= (flags[i] > 0 ? 1U : 0U) << i;
    if (!r.halted) {
        state->own_sum += own->sum / rows;
        state->mean_sum += (double)r.loss;
    }
    state->halted = r.halted;
    records[state->steps % ring] = r;
    state->steps++;
}

} // namespace

#endif
