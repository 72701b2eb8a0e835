/* attention.cuh - what both paths of attention share: where a head's numbers lie, and what their kernels are given. */
#ifndef TK_KERNELS_CUDA_ATTENTION_CUH
#define TK_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda/attention.h"
#include "kernels/cuda/element.cuh"

/* A pass over heads first .. first + n - 1 of all sequences' (head h of sequence b is b * heads + h). */
struct attention_job {
    attention_shape s;
    void *to; /* out, or dqkv */
    const void *qkv;
    const void
        *dout; /* backwards, as dot is: (n, T), the product of each row of the output with its gradient */
    const float *dot;
    const float *lse;
    float scale; /* of the product of a query and a key */
    int first, n;
};

void attention_fast_forward(struct cuda *c, const attention_job &j, float *lse);
void attention_fast_backward(struct cuda *c, const attention_job &j);

namespace
{

enum { QUERIES, KEYS, VALUES, OUTPUT };

/* Position t's numbers of a head begin at p + t * row. */
template <class E> struct head_rows {
    E *p;
    int64_t row;
};

/* OUTPUT: of out or dout; others: of qkv or dqkv. */
template <class E>
__device__ inline head_rows<E> rows_of(const attention_shape &s, E *p, int number, int part)
{
    const int64_t width = (int64_t)s.heads * s.size;
    const int64_t row = part == OUTPUT ? width : 3 * width;
    const int64_t at = part == OUTPUT ? 0 : part * width;
    return head_rows<E>{p + number / s.heads * s.time * row + at + number % s.heads * s.size, row};
}

/* Over LANES neighbours of a warp, on all of them. */
template <int LANES> __device__ inline float lanes_sum(float v)
{
    for (int d = 1; d < LANES; d *= 2)
        v += __shfl_xor_sync(ALL_LANES, v, d);
    return v;
}

template <int LANES> __device__ inline float lanes_most(float v)
{
    for (int d = 1; d < LANES; d *= 2) {
        const float other = __shfl_xor_sync(ALL_LANES, v, d);
        v = other > v ? other : v;
    }
    return v;
}

} // namespace

#endif
