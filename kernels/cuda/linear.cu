/* linear.cu - fully connected layer on a GPU: three matrix products; the bias's gradient with the weights', or with ReLU's mask
 * in one pass. Small products of f32 are kernels of ours, that do what is before and behind them, too: of these cuBLAS has the
 * products alone, each of them two kernels. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/operands.cuh"
#include "kernels/cuda/products.cuh"

namespace
{

template <class E>
void run_forward(struct cuda *c, const struct linear_shape *s, void *out, const void *in, const void *weight,
                 const void *bias, bool relu)
{
    output_product<E>(c, s, (E *)out, s->out, (const E *)in, (const E *)weight, (const E *)bias, relu);
}

/* dbias (or NULL) from dy; behind a ReLU that made y, `own` is what dy is in front of it. */
template <class E>
void bias_gradient_of(struct cuda *c, const struct linear_shape *s, float *dbias, const E *dy, const E *y,
                      E *own)
{
    const bias_store to = {dbias};

    if (rows_packed<E>(s->out, pack_aligned(dy) && pack_aligned(y)))
        columns_sum(c, s->rows, s->out, bias_gradient<E, pack<E>::N>{dy, y, own, s->out}, to);
    else
        columns_sum(c, s->rows, s->out, bias_gradient<E, 1>{dy, y, own, s->out}, to);
}

/* Whether neither of two products with so many outputs keeps the GPU busy, so that they gain by running at once. What is large
 * enough fills it alone. */
inline bool both_are_small(const struct cuda *c, const struct linear_shape *s)
{
    constexpr int SIDE = 128; /* of outputs, that cuBLAS gives a multiprocessor */
    const int64_t in = ceil_div(s->in, SIDE);

    return in * (ceil_div(s->out, SIDE) + ceil_div(s->rows, SIDE)) <= c->sms;
}

/* Weights (O,I) from (output) x (input), and behind the inputs the bias's. */
struct store_gradients {
    float *dweight, *dbias;
    int in;
    bool quads;
    __device__ void put(int row, int col, const float *v, int n) const
    {
        float *to = dweight + (int64_t)row * in + col;
        if (quads && col < in) {
            store_pack(to, pack<float>{v[0], v[1], v[2], v[3]});
            return;
        }
        for (int i = 0; i < n; i++)
            *(col + i < in ? to + i : dbias + row) = v[i];
    }
};

bool is_small(const struct cuda *c, const struct linear_shape *s)
{
    const int64_t most = (int64_t)c->sms
                         << 18; /* multiplications; above, cuBLAS's tiles are worth their launches */

    return c->ctx.element == ELEMENT_F32 && c->precision == PRECISION_F32 &&
           (int64_t)s->rows * s->in * s->out <= most;
}

template <bool Q>
void small_forward(struct cuda *c, const struct linear_shape *s, float *out, const float *in,
                   const float *weight, const float *bias, bool relu)
{
    product_launch<small_cut>(c, s->rows, s->out, s->in, matrix<true, Q, plain<>>{{in}, s->in},
                              matrix<true, Q, plain<>>{{weight}, s->in},
                              store_rows_of(out, bias, s->out, relu));
}

template <bool Q>
void small_backward(struct cuda *c, const struct linear_shape *s, float *din, float *dweight, float *dbias,
                    gradient from, const float *in, const float *weight)
{
    const bool beside = din && din != in;

    if (beside)
        cuda_second_begin(c);
    product_launch<small_cut>(c, s->out, s->in + (dbias ? 1 : 0), s->rows,
                              matrix<false, Q, gradient>{from, s->out},
                              matrix<false, Q, plain<>, true>{{in}, s->in},
                              store_gradients{dweight, dbias, s->in, in_quads(s->in, dweight)});
    if (beside)
        cuda_second_end(c);
    if (din)
        product_launch<small_cut>(c, s->rows, s->in, s->out, matrix<true, Q, gradient>{from, s->out},
                                  matrix<false, Q, plain<>>{{weight}, s->in},
                                  store_rows_of(din, nullptr, s->in, false));
    if (beside)
        cuda_second_join(c);
}

/* A mask has to be there before the products, and its pass gives the bias's gradient; else a product may give it, too. */
template <class E>
void run_backward(struct cuda *c, const struct linear_shape *s, void *din, float *dweight, float *dbias,
                  const void *dout, const void *out, const void *in, const void *before, const void *weight)
{
    const E *dy = (const E *)dout;

    if (out) {
        E *own = (E *)cuda_scratch(c, (size_t)s->rows * (size_t)s->out * sizeof(E));
        bias_gradient_of(c, s, dbias, dy, (const E *)out, own);
        dy = own;
        dbias = nullptr;
    }
    const bool beside = din && din != in && both_are_small(c, s);
    if (beside)
        cuda_second_begin(c);
    if (!weight_product<E>(c, s, dweight, dbias, false, dy, s->out, (const E *)in))
        bias_gradient_of<E>(c, s, dbias, dy, nullptr, nullptr);
    if (beside)
        cuda_second_end(c);
    if (din)
        input_product<E>(c, s, (E *)din, false, dy, s->out, (const E *)weight, (const E *)before);
    if (beside)
        cuda_second_join(c);
}

template <class E>
void run_forward_gelu(struct cuda *c, const struct linear_shape *s, void *out, void *before, const void *in,
                      const void *weight, const void *bias)
{
    gelu_product<E>(c, s, (E *)out, (E *)before, (const E *)in, (const E *)weight, (const E *)bias);
}

} // namespace

void cuda_linear_forward(struct kctx *ctx, const struct linear_shape *s, void *out, const void *in,
                         const void *weight, const void *bias, bool relu)
{
    struct cuda *c = cuda_of(ctx);
    if (!is_small(c, s))
        ELEMENT_CALL(c, run_forward, c, s, out, in, weight, bias, relu);
    else
        (in_quads(s->in, in) && pack_aligned(weight)
             ? small_forward<true>
             : small_forward<false>)(c, s, (float *)out, (const float *)in, (const float *)weight,
                                     (const float *)bias, relu);
}

void cuda_linear_backward(struct kctx *ctx, const struct linear_shape *s, void *din, float *dweight,
                          float *dbias, const void *dout, const void *out, const void *in, const void *weight)
{
    struct cuda *c = cuda_of(ctx);
    const bool quads =
        in_quads(s->in, in) && pack_aligned(weight) && in_quads(s->out, dout) && pack_aligned(out);
    if (!is_small(c, s))
        ELEMENT_CALL(c, run_backward, c, s, din, dweight, dbias, dout, out, in, nullptr, weight);
    else
        (quads ? small_backward<true>
               : small_backward<false>)(c, s, (float *)din, dweight, dbias,
                                        gradient{(const float *)dout, (const float *)out}, (const float *)in,
                                        (const float *)weight);
}

void cuda_linear_gelu_forward(struct kctx *ctx, const struct linear_shape *s, void *out, void *before,
                              const void *in, const void *weight, const void *bias)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward_gelu, c, s, out, before, in, weight, bias);
}

void cuda_gelu_linear_backward(struct kctx *ctx, const struct linear_shape *s, void *din, void *room,
                               float *dweight, float *dbias, const void *dout, const void *in,
                               const void *before, const void *weight)
{
    struct cuda *c = cuda_of(ctx);
    (void)room;
    ELEMENT_CALL(c, run_backward, c, s, din, dweight, dbias, dout, nullptr, in, before, weight);
}
