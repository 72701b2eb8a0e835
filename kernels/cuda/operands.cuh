/* operands.cuh - what products of split.cuh read and write where it is a matrix: rows of activations, weights, gradients. */
#ifndef TK_KERNELS_CUDA_OPERANDS_CUH
#define TK_KERNELS_CUDA_OPERANDS_CUH

#include "kernels/cuda/split.cuh"

namespace
{

constexpr int64_t ALL_ONES = -1;

/* Whether n neighbours from p are aligned quads. */
inline bool in_quads(int64_t n, const void *p)
{
    return rows_packed<float>(n, pack_aligned(p));
}

/* Element (outer, k) of a matrix: K_FAST at outer * by + k, else at k * by + outer. */
template <bool FAST> struct dense_place {
    static constexpr bool K_FAST = FAST;
    typedef int64_t outer;
    typedef int64_t step;
    int by;

    __device__ outer at_outer(int i) const
    {
        return FAST ? (int64_t)i * by : i;
    }
    __device__ step at_step(int k) const
    {
        return FAST ? k : (int64_t)k * by;
    }
};

/* With `ones`, the outer of that number is 1 everywhere: the input of a bias. */
template <bool FAST, bool Q> struct dense {
    static constexpr bool K_FAST = FAST;
    static constexpr bool QUADS = Q;
    typedef int64_t outer;
    typedef int64_t step;
    typedef pack<float> quad;
    dense_place<FAST> place;
    const float *p;
    int ones;

    __device__ outer at_outer(int i) const
    {
        return i == ones ? ALL_ONES : place.at_outer(i);
    }
    __device__ step at_step(int k) const
    {
        return place.at_step(k);
    }
    __device__ float read(outer o, step s) const
    {
        return o == ALL_ONES ? 1.0F : p[o + s];
    }
    __device__ quad read_quad(outer o, step s) const
    {
        return o == ALL_ONES ? quad{1, 1, 1, 1} : load_pack(p + o + s);
    }
};

template <bool FAST, bool Q> dense<FAST, Q> dense_of(const float *p, int by, int ones = -1)
{
    return dense<FAST, Q>{{by}, p, ones};
}

/* Four neighbours of an output's gradient, and of the output itself: 0 where that is not above 0. */
struct masked_quad {
    pack<float> dout, out;
    __device__ operator pack<float>() const
    {
        pack<float> v;
        UNROLL
        for (int j = 0; j < QUAD; j++)
            v.v[j] = out.v[j] > 0 ? dout.v[j] : 0.0F;
        return v;
    }
};
template <bool Q> struct gradient_quad {
    typedef pack<float> type;
};
template <> struct gradient_quad<true> {
    typedef masked_quad type;
};

/* The output's gradient, behind a ReLU when there is `out`. */
struct gradient {
    const float *dout, *out;
    __device__ float at(int64_t i) const
    {
        return !out || out[i] > 0 ? dout[i] : 0.0F;
    }
    __device__ masked_quad quad_at(int64_t i) const
    {
        return masked_quad{load_pack(dout + i), out ? load_pack(out + i) : pack<float>{1, 1, 1, 1}};
    }
};

template <bool FAST, bool Q> struct dense_gradient {
    static constexpr bool K_FAST = FAST;
    static constexpr bool QUADS = Q;
    typedef int64_t outer;
    typedef int64_t step;
    typedef typename gradient_quad<Q>::type quad;
    dense_place<FAST> place;
    gradient from;

    __device__ outer at_outer(int i) const
    {
        return place.at_outer(i);
    }
    __device__ step at_step(int k) const
    {
        return place.at_step(k);
    }
    __device__ float read(outer o, step s) const
    {
        return from.at(o + s);
    }
    __device__ masked_quad read_quad(outer o, step s) const
    {
        return from.quad_at(o + s);
    }
};

/* Rows of `cols` outputs. */
struct store_rows {
    float *out;
    const float *bias; /* or NULL */
    int cols;
    bool relu, quads; /* quads: out is written by them */

    __device__ float ready(int col, float v) const
    {
        if (bias)
            v += bias[col];
        return relu && v < 0 ? 0.0F : v; /* NaN stays */
    }
    __device__ void put(int row, int col, const float *v, int n) const
    {
        float *to = out + (int64_t)row * cols + col;
        if (quads) {
            store_pack(to, pack<float>{ready(col, v[0]), ready(col + 1, v[1]), ready(col + 2, v[2]),
                                       ready(col + 3, v[3])});
            return;
        }
        for (int i = 0; i < n; i++)
            to[i] = ready(col + i, v[i]);
    }
};

inline store_rows store_rows_of(float *out, const float *bias, int cols, bool relu)
{
    return store_rows{out, bias, cols, relu, in_quads(cols, out)};
}

} // namespace

#endif
