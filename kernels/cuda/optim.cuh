/* optim.cuh - the rules by which parameters are updated. Operations are rounded as on the CPU (kernels/cpu/isa/optim.c), each where it
 * is there, so both give the same bits: nothing is left for the compiler to fuse. */
#ifndef TK_KERNELS_CUDA_OPTIM_CUH
#define TK_KERNELS_CUDA_OPTIM_CUH

#include "kernels/cuda/vector.cuh"

namespace
{

__device__ void adam_element(const struct adam_scalars &s, float *p, float *m, float *v, float g)
{
    float w = __fmul_rn(*p, s.decay);
    float grad = __fmaf_rn(s.l2, w, g);
    float m1 = __fmaf_rn(s.one_minus_beta1, __fadd_rn(grad, -*m), *m);
    float v1 = __fmaf_rn(__fmul_rn(s.one_minus_beta2, grad), grad, __fmul_rn(*v, s.beta2));
    float denom = __fadd_rn(sqrtf(v1) / s.bc2_sqrt, s.eps);
    *m = m1;
    *v = v1;
    *p = __fadd_rn(w, __fmul_rn(s.minus_step_size, m1) / denom);
}

__device__ void sgd_element(const struct sgd_scalars &s, float *p, float *u, float g)
{
    float step = __fmaf_rn(s.l2, *p, g);
    if (u) {
        float u1 = __fmaf_rn(s.one_minus_dampening, step, __fmul_rn(s.momentum, *u));
        *u = u1;
        step = s.nesterov ? __fmaf_rn(s.momentum, u1, step) : u1;
    }
    *p = __fmaf_rn(s.minus_lr, step, *p);
}

/* The span that holds element i. */
__device__ int span_at(const struct queued_span *span, int spans, int64_t i)
{
    int low = 0;
    int high = spans - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (i < span[middle].end)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct adam_rule {
    float *m, *v;
    template <int N> struct moments {
        piece<float, N> m, v;
    };
    template <int N> __device__ moments<N> load(int64_t i) const
    {
        return moments<N>{load_piece<float, N>(m + i), load_piece<float, N>(v + i)};
    }
    template <int N> __device__ void store(int64_t i, const moments<N> &x) const
    {
        store_piece(m + i, x.m);
        store_piece(v + i, x.v);
    }
    template <int N>
    __device__ void step(const update_scalars &s, float *p, moments<N> *x, int k, float g) const
    {
        adam_element(s.adam, p, &x->m.v[k], &x->v.v[k], g);
    }
};

struct sgd_rule {
    float *m; /* NULL: without momentum */
    template <int N> struct moments {
        piece<float, N> m;
    };
    template <int N> __device__ moments<N> load(int64_t i) const
    {
        return m ? moments<N>{load_piece<float, N>(m + i)} : moments<N>{};
    }
    template <int N> __device__ void store(int64_t i, const moments<N> &x) const
    {
        if (m)
            store_piece(m + i, x.m);
    }
    template <int N>
    __device__ void step(const update_scalars &s, float *p, moments<N> *x, int k, float g) const
    {
        sgd_element(s.sgd, p, m ? &x->m.v[k] : nullptr, g);
    }
};

} // namespace

#endif
