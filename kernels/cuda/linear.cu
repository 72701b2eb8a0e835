/* linear.cu - fully connected layer on a GPU: three matrix products, the bias's column sums, ReLU's mask. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/products.cuh"

namespace
{

template <class E> __global__ void mask(E *to, const E *dout, const E *out, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        to[i] = out[i] > 0 ? dout[i] : (E)0.0F;
}

template <class E>
void run_forward(struct cuda *c, const struct linear_shape *s, void *out, const void *in, const void *weight,
                 const void *bias, bool relu)
{
    output_product<E>(c, s, (E *)out, s->out, (const E *)in, (const E *)weight, (const E *)bias, relu);
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
    if (dbias && rows_packed<E>(s->out, pack_aligned(dy)))
        columns_sum_packed(c, s->rows, s->out, packed_gradient<E>{dy, s->out}, store_column{dbias});
    else if (dbias)
        columns_sum(c, s->rows, s->out, masked_gradient<E>{dy, nullptr, s->out}, store_column{dbias});
    weight_product<E>(c, s, dweight, false, dy, s->out, (const E *)in);
    if (din)
        input_product<E>(c, s, (E *)din, dy, s->out, (const E *)weight);
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
