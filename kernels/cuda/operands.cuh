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

/* Numbers as they are; by quads of f32. */
template <class E = float> struct plain {
    typedef pack<float> quad;
    const E *p;
    __device__ float at(int64_t i) const
    {
        return p[i];
    }
    __device__ quad quad_at(int64_t i) const
    {
        return load_pack(p + i);
    }
};

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

/* The output's gradient, behind a ReLU when there is `out`. */
struct gradient {
    typedef masked_quad quad;
    const float *dout, *out;
    __device__ float at(int64_t i) const
    {
        return !out || out[i] > 0 ? dout[i] : 0.0F;
    }
    __device__ quad quad_at(int64_t i) const
    {
        return quad{load_pack(dout + i), out ? load_pack(out + i) : pack<float>{1, 1, 1, 1}};
    }
};

/* Element (outer, k) of a matrix: K_FAST at outer * by + k, else at k * by + outer. ONES: outer `by` is 1 everywhere, the input of a
 * bias. */
template <bool FAST, bool Q, class From, bool ONES = false, class By = int> struct matrix {
    static constexpr bool K_FAST = FAST;
    static constexpr bool QUADS = Q;
    typedef int64_t outer;
    typedef int64_t step;
    typedef typename From::quad quad;
    From from;
    By by;

    __device__ outer at_outer(int i) const
    {
        if (ONES && i == by)
            return ALL_ONES;
        return FAST ? (int64_t)i * by : i;
    }
    __device__ step at_step(int k) const
    {
        return FAST ? k : (int64_t)k * by;
    }
    __device__ float read(outer o, step s) const
    {
        return ONES && o == ALL_ONES ? 1.0F : from.at(o + s);
    }
    __device__ quad read_quad(outer o, step s) const
    {
        if constexpr (ONES)
            if (o == ALL_ONES)
                return quad{1, 1, 1, 1};
        return from.quad_at(o + s);
    }
};

/* Element by element, one right behind the other. */
template <bool FAST, class E = float, class By = int>
using single_matrix = matrix<FAST, false, plain<E>, false, By>;

/* Rows of outputs, `stride` apart. */
template <class E = float> struct store_rows {
    E *out;
    const E *bias; /* or NULL */
    int stride;
    bool relu, quads; /* quads: out, which is f32, is written by them */

    __device__ float ready(int col, float v) const
    {
        if (bias)
            v += (float)bias[col];
        return relu && v < 0 ? 0.0F : v; /* NaN stays */
    }
    __device__ void put(int row, int col, const float *v, int n) const
    {
        E *to = out + (int64_t)row * stride + col;
        if constexpr (sizeof(E) == sizeof(float))
            if (quads) {
                store_pack(to, pack<float>{ready(col, v[0]), ready(col + 1, v[1]), ready(col + 2, v[2]),
                                           ready(col + 3, v[3])});
                return;
            }
        for (int i = 0; i < n; i++)
            to[i] = (E)ready(col + i, v[i]);
    }
};

inline store_rows<> store_rows_of(float *out, const float *bias, int cols, bool relu)
{
    return store_rows<>{out, bias, cols, relu, in_quads(cols, out)};
}

} // namespace

#endif
