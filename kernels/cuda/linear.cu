/* linear.cu - the three products, by cuBLAS or by our own tiles.
 *
 * Row-major (R,I) is cuBLAS's (I,R). So out^T (O,R) = weight (O,I) in^T, where weight and in lie there as (I,O) and (I,R).
 */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/tile.cuh"

namespace
{

template <class E> struct store_out {
    E *out;
    const E *bias;
    int cols;
    bool relu;
    __device__ void put(int row, int col, int, float v) const
    {
        if (bias)
            v += bias[col];
        out[(int64_t)row * cols + col] = (E)(relu && v < 0 ? 0.0F : v); /* NaN stays */
    }
};

template <class E> struct store_plain {
    E *to;
    int cols;
    __device__ void put(int row, int col, int, float v) const
    {
        to[(int64_t)row * cols + col] = (E)v;
    }
};

template <class E> __global__ void mask(E *to, const E *dout, const E *out, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        to[i] = out[i] > 0 ? dout[i] : (E)0.0F;
}

template <class E>
void weight_gradient(struct cuda *c, const struct linear_shape *s, float *dweight, const E *dy, const E *in)
{
    product p = {};
    p.of = c->ctx.element, p.to = ELEMENT_F32;
    p.m = s->in, p.n = s->out, p.k = s->rows;
    p.a = in, p.lda = s->in;
    p.b = dy, p.ldb = s->out, p.b_transposed = true;
    p.c = dweight;
    if (matmul_run(c, &p))
        return;
    tile_launch(c, s->out, s->in, s->rows, 1, tile_matrix<false, E>{dy, 1, s->out},
                tile_matrix<false, E>{in, 1, s->in}, store_plain<float>{dweight, s->in});
}

template <class E>
void input_gradient(struct cuda *c, const struct linear_shape *s, E *din, const E *dy, const E *weight)
{
    product p = {};
    p.of = p.to = c->ctx.element;
    p.m = s->in, p.n = s->rows, p.k = s->out;
    p.a = weight, p.lda = s->in;
    p.b = dy, p.ldb = s->out;
    p.c = din;
    if (matmul_run(c, &p))
        return;
    tile_launch(c, s->rows, s->in, s->out, 1, tile_matrix<true, E>{dy, s->out, 1},
                tile_matrix<false, E>{weight, 1, s->in}, store_plain<E>{din, s->in});
}

template <class E>
void run_forward(struct cuda *c, const struct linear_shape *s, void *out, const void *in, const void *weight,
                 const void *bias, bool relu)
{
    product p = {};
    p.of = p.to = c->ctx.element;
    p.m = s->out, p.n = s->rows, p.k = s->in;
    p.a = weight, p.lda = s->in, p.a_transposed = true;
    p.b = in, p.ldb = s->in;
    p.c = out;
    p.bias = bias, p.relu = relu;
    if (matmul_run(c, &p))
        return;
    tile_launch(c, s->rows, s->out, s->in, 1, tile_matrix<true, E>{(const E *)in, s->in, 1},
                tile_matrix<true, E>{(const E *)weight, s->in, 1},
                store_out<E>{(E *)out, (const E *)bias, s->out, relu});
}

template <class E>
void run_backward(struct cuda *c, const struct linear_shape *s, void *din, float *dweight, float *dbias,
                  const void *dout, const void *out, const void *in, const void *weight)
{
    const int64_t n = (int64_t)s->rows * s->out;
    const E *dy = (const E *)dout;

    if (out) {
        E *own = (E *)cuda_scratch(c, (size_t)n * sizeof(E)); /* linear_workspace_bytes has it */
        LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, mask<E>, own, dy, (const E *)out, n);
        dy = own;
    }
    if (dbias)
        columns_sum(c, s->rows, s->out, masked_gradient<E>{dy, nullptr, s->out}, store_column{dbias});
    weight_gradient<E>(c, s, dweight, dy, (const E *)in);
    if (din)
        input_gradient<E>(c, s, (E *)din, dy, (const E *)weight);
}

} // namespace

void cuda_linear_forward(struct kctx *ctx, const struct linear_shape *s, void *out, const void *in,
                         const void *weight, const void *bias, bool relu)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward, c, s, out, in, weight, bias, relu);
}

void cuda_linear_backward(struct kctx *ctx, const struct linear_shape *s, void *din, float *dweight,
                          float *dbias, const void *dout, const void *out, const void *in, const void *weight)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, s, din, dweight, dbias, dout, out, in, weight);
}
