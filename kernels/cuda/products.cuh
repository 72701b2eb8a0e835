/* products.cuh - the three products of a matrix of weights, by cuBLAS or by our own tiles.
 *
 * Row-major (R,I) is cuBLAS's (I,R). So out^T (O,R) = weight (O,I) in^T, where weight and in lie there as (I,O) and (I,R).
 * Rows of outputs, and of their gradients, may lie further apart than they are long: `stride` elements.
 */
#ifndef TK_KERNELS_CUDA_PRODUCTS_CUH
#define TK_KERNELS_CUDA_PRODUCTS_CUH

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/operands.cuh"

namespace
{

template <class E> struct store_plain {
    E *to;
    int cols;
    bool more;
    __device__ void put(int row, int col, const float *v, int n) const
    {
        E *at = to + (int64_t)row * cols + col;
        for (int i = 0; i < n; i++)
            at[i] = (E)(more ? (float)at[i] + v[i] : v[i]);
    }
};

/* In place. */
template <class E> __global__ void product_relu(E *out, int rows, int cols, int stride)
{
    const int64_t n = (int64_t)rows * cols;

    for (int64_t i = each_first(); i < n; i += each_stride()) {
        E *at = out + i / cols * stride + i % cols;
        if ((float)*at < 0)
            *at = (E)0.0F; /* NaN stays */
    }
}

/* Each row is the bias. */
template <class E> __global__ void product_bias(E *out, const E *bias, int rows, int cols, int stride)
{
    const int64_t n = (int64_t)rows * cols;

    for (int64_t i = each_first(); i < n; i += each_stride())
        out[i / cols * stride + i % cols] = bias[i % cols];
}

/* A bias that cuBLAS does not take is there before the product: in bf16 the sum of both is rounded once. */
template <class E> void put_bias(struct cuda *c, const struct linear_shape *s, product *p, E *out, int stride)
{
    if (!p->bias || matmul_takes_bias(c, p))
        return;
    LAUNCH(c, blocks_for((int64_t)s->rows * s->out, EACH_THREADS), EACH_THREADS, product_bias<E>, out,
           (const E *)p->bias, s->rows, s->out, stride);
    p->bias = nullptr, p->more = true;
}

/* in and weight of it; what it becomes is still to be said. */
template <class E>
product output_product_of(struct cuda *c, const struct linear_shape *s, const E *in, const E *weight,
                          const E *bias)
{
    product p = {};
    p.of = p.to = c->ctx.element;
    p.m = s->out, p.n = s->rows, p.k = s->in;
    p.a = weight, p.lda = s->in, p.a_transposed = true;
    p.b = in, p.ldb = s->in;
    p.bias = bias;
    return p;
}

template <class E>
void output_product(struct cuda *c, const struct linear_shape *s, E *out, int stride, const E *in,
                    const E *weight, const E *bias, bool relu)
{
    product p = output_product_of<E>(c, s, in, weight, bias);
    p.c = out, p.ldc = stride;
    p.extra = relu ? EXTRA_RELU : EXTRA_NONE;
    put_bias<E>(c, s, &p, out, stride);
    if (matmul_run(c, &p)) {
        if (p.extra != EXTRA_NONE)
            LAUNCH(c, blocks_for((int64_t)s->rows * s->out, EACH_THREADS), EACH_THREADS, product_relu<E>, out,
                   s->rows, s->out, stride);
        return;
    }
    product_launch<small_cut>(c, s->rows, s->out, s->in, single_matrix<true, E>{{in}, s->in},
                              single_matrix<true, E>{{weight}, s->in},
                              store_rows<E>{out, bias, stride, relu, false});
}

/* before = the output, out = its GELU. */
template <class E>
void gelu_product(struct cuda *c, const struct linear_shape *s, E *out, E *before, const E *in,
                  const E *weight, const E *bias)
{
    product p = output_product_of<E>(c, s, in, weight, bias);
    p.c = out, p.aux = before, p.extra = EXTRA_GELU;
    put_bias<E>(c, s, &p, before, s->out);
    if (!matmul_run(c, &p))
        product_launch<small_cut>(c, s->rows, s->out, s->in, single_matrix<true, E>{{in}, s->in},
                                  single_matrix<true, E>{{weight}, s->in},
                                  store_rows<E>{before, bias, s->out, false, false});
    if (p.extra != EXTRA_NONE)
        cuda_gelu_forward(&c->ctx, GELU_TANH, out, before, (size_t)s->rows * (size_t)s->out);
}

/* With `more` it is added to what dweight holds. dbias (or NULL) gets the sums of dy's columns. false: that is still to be
 * done. */
template <class E>
bool weight_product(struct cuda *c, const struct linear_shape *s, float *dweight, float *dbias, bool more,
                    const E *dy, int stride, const E *in)
{
    product p = {};
    p.of = c->ctx.element, p.to = ELEMENT_F32;
    p.m = s->in, p.n = s->out, p.k = s->rows;
    p.a = in, p.lda = s->in;
    p.b = dy, p.ldb = stride, p.b_transposed = true;
    p.c = dweight, p.more = more;
    p.aux = dbias, p.extra = dbias ? EXTRA_COLUMN_SUMS : EXTRA_NONE;
    if (!matmul_run(c, &p))
        product_launch<small_cut>(c, s->out, s->in, s->rows, single_matrix<false, E>{{dy}, stride},
                                  single_matrix<false, E>{{in}, s->in},
                                  store_plain<float>{dweight, s->in, more});
    return p.extra == EXTRA_NONE;
}

/* With `more` it is added to what din holds. With `before` (else NULL), the gradient in front of the GELU of that. */
template <class E>
void input_product(struct cuda *c, const struct linear_shape *s, E *din, bool more, const E *dy, int stride,
                   const E *weight, const E *before)
{
    product p = {};
    p.of = p.to = c->ctx.element;
    p.m = s->in, p.n = s->rows, p.k = s->out;
    p.a = weight, p.lda = s->in;
    p.b = dy, p.ldb = stride;
    p.c = din, p.more = more;
    p.aux = (void *)before, p.extra = before ? EXTRA_GELU_GRADIENT : EXTRA_NONE;
    if (!matmul_run(c, &p))
        product_launch<small_cut>(c, s->rows, s->in, s->out, single_matrix<true, E>{{dy}, stride},
                                  single_matrix<false, E>{{weight}, s->in}, store_plain<E>{din, s->in, more});
    if (p.extra != EXTRA_NONE) /* in place: each element is read and written by one thread */
        cuda_gelu_backward(&c->ctx, GELU_TANH, din, din, before, (size_t)s->rows * (size_t)s->in);
}

} // namespace

#endif
