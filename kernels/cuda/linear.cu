/* linear.cu - fully connected layer on a GPU: three matrix products; the bias's column sums and ReLU's mask in one pass. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/products.cuh"

namespace
{

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
    const E *dy = (const E *)dout;
    const E *y = (const E *)out;
    E *own = y ? (E *)cuda_scratch(c, (size_t)s->rows * (size_t)s->out * sizeof(E)) : nullptr;
    const bias_store to = {dbias};

    if (rows_packed<E>(s->out, pack_aligned(dy) && pack_aligned(y)) && (y || dbias))
        columns_sum_packed(c, s->rows, s->out, bias_gradient_packed<E>{dy, y, own, s->out}, to);
    else if (y || dbias)
        columns_sum(c, s->rows, s->out, bias_gradient<E>{dy, y, own, s->out}, to);
    dy = y ? own : dy;
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
