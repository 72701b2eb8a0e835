/* layernorm.cu - layer normalisation on a GPU: a warp per row; the parameters' gradients are sums of columns. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

/* What a lane takes of a row at a time: four bytes, so that the parameters beside them, four bytes each, come in few lines of
 * the cache; a pack of bf16 has eight parameters, a line apart from lane to lane. ALONE: where rows are not aligned so. */
template <class E> constexpr int TOGETHER = 4 / (int)sizeof(E);
constexpr int ALONE = 1;

template <class E> bool pieces_aligned(const void *p, int cols)
{
    return (uintptr_t)p % (TOGETHER<E> * sizeof(E)) == 0 && cols % TOGETHER<E> == 0;
}

template <class E, int N>
__global__ void layernorm_rows(E *out, float *mean, float *rstd, const E *in, const float *weight,
                               const float *bias, double eps, int rows, int cols)
{
    typedef typename sum_of_few<E>::type sum_type;

    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        const E *x = in + r * cols;
        sum_type sum = 0;
        sum_type square = 0;
        UNROLL_4
        for (int c = lane() * N; c < cols; c += WARP * N) {
            const piece<E, N> p = load_piece<E, N>(x + c);
            for (int k = 0; k < N; k++)
                sum += (sum_type)(float)p.v[k];
        }
        const sum_type m = warp_sum(sum) / (sum_type)cols;
        UNROLL_4
        for (int c = lane() * N; c < cols; c += WARP * N) {
            const piece<E, N> p = load_piece<E, N>(x + c);
            for (int k = 0; k < N; k++)
                square += ((sum_type)(float)p.v[k] - m) * ((sum_type)(float)p.v[k] - m);
        }
        const float mean32 = (float)m;
        const float rstd32 = (float)(1 / sqrt((double)warp_sum(square) / cols + eps));
        UNROLL_4
        for (int c = lane() * N; c < cols; c += WARP * N) {
            piece<E, N> p = load_piece<E, N>(x + c);
            for (int k = 0; k < N; k++)
                p.v[k] =
                    (E)__fmaf_rn(((float)p.v[k] - mean32) * rstd32, weight[c + k], bias ? bias[c + k] : 0.0F);
            store_piece(out + r * cols + c, p);
        }
        if (lane() == 0) {
            mean[r] = mean32;
            rstd[r] = rstd32;
        }
    }
}

template <class E, int N>
__global__ void layernorm_input_gradient(E *din, const E *dout, const E *more, const E *in,
                                         const float *weight, const float *mean, const float *rstd, int rows,
                                         int cols)
{
    typedef typename sum_of_few<E>::type sum_type;

    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        const E *x = in + r * cols;
        const E *dy = dout + r * cols;
        const float m = mean[r];
        const float s = rstd[r];
        sum_type sum = 0;
        sum_type dot = 0;
        UNROLL_4
        for (int c = lane() * N; c < cols; c += WARP * N) {
            const piece<E, N> p = load_piece<E, N>(x + c);
            const piece<E, N> d = load_piece<E, N>(dy + c);
            for (int k = 0; k < N; k++) {
                const float g = (float)d.v[k] * weight[c + k];
                sum += (sum_type)g;
                dot += (sum_type)g * (sum_type)(((float)p.v[k] - m) * s);
            }
        }
        const float dmean = (float)(warp_sum(sum) / (sum_type)cols);
        const float dvar = (float)(warp_sum(dot) / (sum_type)cols);
        UNROLL_4
        for (int c = lane() * N; c < cols; c += WARP * N) {
            const piece<E, N> p = load_piece<E, N>(x + c);
            piece<E, N> d = load_piece<E, N>(dy + c);
            const piece<E, N> by = more ? load_piece<E, N>(more + r * cols + c) : piece<E, N>{};
            for (int k = 0; k < N; k++)
                d.v[k] = (E)(s * ((float)d.v[k] * weight[c + k] - dmean - ((float)p.v[k] - m) * s * dvar) +
                             (float)by.v[k]);
            store_piece(din + r * cols + c, d);
        }
    }
}

template <class Element, int COLUMNS> struct layernorm_gradients {
    typedef Element E;
    static constexpr int N = 2;
    static constexpr int COLS = COLUMNS;
    const E *dout, *x;
    const float *mean, *rstd;
    int cols;
    template <class S> __device__ void add(int row, int col, S *v) const
    {
        const int64_t i = (int64_t)row * cols + col;
        const piece<E, COLS> dy = load_piece<E, COLS>(dout + i);
        const piece<E, COLS> in = load_piece<E, COLS>(x + i);
        const float m = mean[row];
        const float s = rstd[row];
        UNROLL
        for (int k = 0; k < COLS; k++) {
            v[2 * k] += (S)(float)dy.v[k];
            v[2 * k + 1] += (S)(float)dy.v[k] * (S)(((float)in.v[k] - m) * s);
        }
    }
};

struct layernorm_store {
    float *dweight, *dbias;
    __device__ void put(int col, const double *sum) const
    {
        dweight[col] = (float)sum[1];
        if (dbias)
            dbias[col] = (float)sum[0];
    }
};

template <class E>
void run_forward(struct cuda *c, const struct layernorm_shape *s, void *out, float *mean, float *rstd,
                 const void *in, const float *weight, const float *bias)
{
    if (pieces_aligned<E>(out, s->channels) && pieces_aligned<E>(in, s->channels))
        LAUNCH(c, row_blocks(s->rows), ROW_THREADS, (layernorm_rows<E, TOGETHER<E>>), (E *)out, mean, rstd,
               (const E *)in, weight, bias, s->eps, s->rows, s->channels);
    else
        LAUNCH(c, row_blocks(s->rows), ROW_THREADS, (layernorm_rows<E, ALONE>), (E *)out, mean, rstd,
               (const E *)in, weight, bias, s->eps, s->rows, s->channels);
}

template <class E>
void run_backward(struct cuda *c, const struct layernorm_shape *s, void *din, float *dweight, float *dbias,
                  const void *dout, const void *more, const void *in, const float *mean, const float *rstd,
                  const float *weight)
{
    const E *dy = (const E *)dout;
    const E *x = (const E *)in;
    const layernorm_store to = {dweight, dbias};
    const int cols = s->channels;

    if (rows_packed<E>(cols, pack_aligned(dy) && pack_aligned(x)))
        columns_sum(c, s->rows, cols, layernorm_gradients<E, pack<E>::N>{dy, x, mean, rstd, cols}, to);
    else
        columns_sum(c, s->rows, cols, layernorm_gradients<E, 1>{dy, x, mean, rstd, cols}, to);
    if (!din)
        return;
    if (pieces_aligned<E>(din, cols) && pieces_aligned<E>(dy, cols) && pieces_aligned<E>(x, cols) &&
        pieces_aligned<E>(more, cols))
        LAUNCH(c, row_blocks(s->rows), ROW_THREADS, (layernorm_input_gradient<E, TOGETHER<E>>), (E *)din, dy,
               (const E *)more, x, weight, mean, rstd, s->rows, cols);
    else
        LAUNCH(c, row_blocks(s->rows), ROW_THREADS, (layernorm_input_gradient<E, ALONE>), (E *)din, dy,
               (const E *)more, x, weight, mean, rstd, s->rows, cols);
}

} // namespace

void cuda_layernorm_forward(struct kctx *ctx, const struct layernorm_shape *s, void *out, float *mean,
                            float *rstd, const void *in, const float *weight, const float *bias)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward, c, s, out, mean, rstd, in, weight, bias);
}

void cuda_layernorm_backward(struct kctx *ctx, const struct layernorm_shape *s, void *din, float *dweight,
                             float *dbias, const void *dout, const void *more, const void *in,
                             const float *mean, const float *rstd, const float *weight)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, s, din, dweight, dbias, dout, more, in, mean, rstd, weight);
}
