/* layernorm.cu - layer normalisation on a GPU: a warp per row; the parameters' gradients are sums of columns. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

/* A lane's part of a row: piece k of N elements begins at element lane_col<N>(k). KEPT pieces stay in registers; with 0, rows are
 * as long as they like and their elements are read again. Pieces are four bytes long, so that the parameters beside them, four
 * bytes each, come in few lines of the cache; a pack of bf16 has eight parameters, a line apart from lane to lane. */
template <class E> constexpr int TOGETHER = 4 / (int)sizeof(E);
constexpr int KEPT_MOST = 16;

template <int N> __device__ inline int lane_col(int k)
{
    return (k * WARP + lane()) * N;
}

template <class E, int N, int KEPT> struct lane_row {
    const E *p;
    piece<E, N> kept[KEPT ? KEPT : 1];

    __device__ void take(const E *row, int cols)
    {
        p = row;
        UNROLL
        for (int k = 0; k < KEPT; k++)
            if (lane_col<N>(k) < cols)
                kept[k] = load_piece<E, N>(p + lane_col<N>(k));
    }
    __device__ piece<E, N> at(int k) const
    {
        return KEPT ? kept[KEPT ? k : 0] : load_piece<E, N>(p + lane_col<N>(k));
    }
};

/* How many pieces a lane goes over: a constant where they are kept, so that the loop is unrolled. */
template <int N, int KEPT> __device__ inline int lane_pieces(int cols)
{
    return KEPT ? KEPT : (int)ceil_div(cols, WARP * N);
}

template <class E, int N, int KEPT>
__global__ void layernorm_rows(E *out, float *mean, float *rstd, const E *in, const float *weight,
                               const float *bias, double eps, int rows, int cols)
{
    typedef typename sum_of_few<E>::type sum_type;
    const int pieces = lane_pieces<N, KEPT>(cols);

    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        lane_row<E, N, KEPT> x;
        sum_type sum = 0;
        sum_type square = 0;
        x.take(in + r * cols, cols);
        UNROLL
        for (int k = 0; k < pieces; k++)
            if (lane_col<N>(k) < cols)
                for (int i = 0; i < N; i++)
                    sum += (sum_type)(float)x.at(k).v[i];
        const sum_type m = warp_sum(sum) / (sum_type)cols;
        UNROLL
        for (int k = 0; k < pieces; k++)
            if (lane_col<N>(k) < cols)
                for (int i = 0; i < N; i++)
                    square += ((sum_type)(float)x.at(k).v[i] - m) * ((sum_type)(float)x.at(k).v[i] - m);
        const float mean32 = (float)m;
        const float rstd32 = (float)(1 / sqrt((double)warp_sum(square) / cols + eps));
        UNROLL
        for (int k = 0; k < pieces; k++) {
            const int c = lane_col<N>(k);
            if (c >= cols)
                continue;
            piece<E, N> p = x.at(k);
            for (int i = 0; i < N; i++)
                p.v[i] =
                    (E)__fmaf_rn(((float)p.v[i] - mean32) * rstd32, weight[c + i], bias ? bias[c + i] : 0.0F);
            store_piece(out + r * cols + c, p);
        }
        if (lane() == 0) {
            mean[r] = mean32;
            rstd[r] = rstd32;
        }
    }
}

template <class E, int N, int KEPT>
__global__ void layernorm_input_gradient(E *din, const E *dout, const E *more, const E *in,
                                         const float *weight, const float *mean, const float *rstd, int rows,
                                         int cols)
{
    typedef typename sum_of_few<E>::type sum_type;
    const int pieces = lane_pieces<N, KEPT>(cols);

    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        lane_row<E, N, KEPT> x;
        lane_row<E, N, KEPT> dy;
        const float m = mean[r];
        const float s = rstd[r];
        sum_type sum = 0;
        sum_type dot = 0;
        x.take(in + r * cols, cols);
        dy.take(dout + r * cols, cols);
        UNROLL
        for (int k = 0; k < pieces; k++) {
            const int c = lane_col<N>(k);
            for (int i = 0; i < N && c < cols; i++) {
                const float g = (float)dy.at(k).v[i] * weight[c + i];
                sum += (sum_type)g;
                dot += (sum_type)g * (sum_type)(((float)x.at(k).v[i] - m) * s);
            }
        }
        const float dmean = (float)(warp_sum(sum) / (sum_type)cols);
        const float dvar = (float)(warp_sum(dot) / (sum_type)cols);
        UNROLL
        for (int k = 0; k < pieces; k++) {
            const int c = lane_col<N>(k);
            if (c >= cols)
                continue;
            const piece<E, N> p = x.at(k);
            piece<E, N> d = dy.at(k);
            const piece<E, N> by = more ? load_piece<E, N>(more + r * cols + c) : piece<E, N>{};
            for (int i = 0; i < N; i++)
                d.v[i] = (E)(s * ((float)d.v[i] * weight[c + i] - dmean - ((float)p.v[i] - m) * s * dvar) +
                             (float)by.v[i]);
            store_piece(din + r * cols + c, d);
        }
    }
}

/* Whether pieces are aligned where a row begins at p. */
template <class E> bool row_aligned(const void *p, int cols)
{
    return (uintptr_t)p % (TOGETHER<E> * sizeof(E)) == 0 && cols % TOGETHER<E> == 0;
}

#define LAYERNORM_LAUNCH(c, kernel, aligned, rows, cols, ...)                                                \
    do {                                                                                                     \
        if ((aligned) && (cols) <= KEPT_MOST * WARP * TOGETHER<E>)                                           \
            LAUNCH(c, row_blocks(rows), ROW_THREADS, (kernel<E, TOGETHER<E>, KEPT_MOST>), __VA_ARGS__, rows, \
                   cols);                                                                                    \
        else if (aligned)                                                                                    \
            LAUNCH(c, row_blocks(rows), ROW_THREADS, (kernel<E, TOGETHER<E>, 0>), __VA_ARGS__, rows, cols);  \
        else                                                                                                 \
            LAUNCH(c, row_blocks(rows), ROW_THREADS, (kernel<E, 1, 0>), __VA_ARGS__, rows, cols);            \
    } while (0)

template <class E> struct layernorm_gradients {
    static constexpr int N = 2;
    const E *dout, *x;
    const float *mean, *rstd;
    int cols;
    __device__ void at(int row, int col, double *v) const
    {
        int64_t i = (int64_t)row * cols + col;
        v[0] = (double)dout[i];
        v[1] = (double)dout[i] * (double)((x[i] - mean[row]) * rstd[row]);
    }
};

template <class Element> struct layernorm_packed_gradients {
    typedef Element E;
    static constexpr int N = 2;
    static constexpr int COLS = pack<E>::N;
    const E *dout, *x;
    const float *mean, *rstd;
    int cols;
    template <class S> __device__ void pack_at(int row, int col, S *v) const
    {
        const int64_t i = (int64_t)row * cols + col;
        const pack<E> dy = load_pack(dout + i);
        const pack<E> in = load_pack(x + i);
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
    const bool aligned = row_aligned<E>(out, s->channels) && row_aligned<E>(in, s->channels);

    LAYERNORM_LAUNCH(c, layernorm_rows, aligned, s->rows, s->channels, (E *)out, mean, rstd, (const E *)in,
                     weight, bias, s->eps);
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
        columns_sum_packed(c, s->rows, cols, layernorm_packed_gradients<E>{dy, x, mean, rstd, cols}, to);
    else
        columns_sum(c, s->rows, cols, layernorm_gradients<E>{dy, x, mean, rstd, cols}, to);
    if (!din)
        return;
    const bool aligned = row_aligned<E>(din, cols) && row_aligned<E>(dy, cols) && row_aligned<E>(x, cols) &&
                         row_aligned<E>(more, cols);
    LAYERNORM_LAUNCH(c, layernorm_input_gradient, aligned, s->rows, cols, (E *)din, dy, (const E *)more, x,
                     weight, mean, rstd);
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
