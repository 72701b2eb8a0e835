/* layernorm.cu - a warp per row; the parameters' gradients are sums of columns. */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

template <class E>
__global__ void forward(E *out, float *mean, float *rstd, const E *in, const float *weight, const float *bias,
                        double eps, int rows, int cols)
{
    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        const E *x = in + r * cols;
        double sum = 0;
        double square = 0;
        for (int c = lane(); c < cols; c += WARP)
            sum += (double)x[c];
        const double m = warp_sum(sum) / cols;
        for (int c = lane(); c < cols; c += WARP)
            square += ((double)x[c] - m) * ((double)x[c] - m);
        const float mean32 = (float)m;
        const float rstd32 = (float)(1 / sqrt(warp_sum(square) / cols + eps));
        for (int c = lane(); c < cols; c += WARP)
            out[r * cols + c] = (E)(__fmaf_rn((x[c] - mean32) * rstd32, weight[c], bias ? bias[c] : 0.0F));
        if (lane() == 0) {
            mean[r] = mean32;
            rstd[r] = rstd32;
        }
    }
}

template <class E>
__global__ void input_gradient(E *din, const E *dout, const E *in, const float *weight, const float *mean,
                               const float *rstd, int rows, int cols)
{
    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        const E *x = in + r * cols;
        const E *dy = dout + r * cols;
        double sum = 0;
        double dot = 0;
        for (int c = lane(); c < cols; c += WARP) {
            float d = dy[c] * weight[c];
            sum += (double)d;
            dot += (double)d * (double)((x[c] - mean[r]) * rstd[r]);
        }
        const float dmean = (float)(warp_sum(sum) / cols);
        const float dvar = (float)(warp_sum(dot) / cols);
        for (int c = lane(); c < cols; c += WARP)
            din[r * cols + c] =
                (E)(rstd[r] * (dy[c] * weight[c] - dmean - (x[c] - mean[r]) * rstd[r] * dvar));
    }
}

template <class E> struct gradients_of {
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

struct store_gradients {
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
    LAUNCH(c, row_blocks(s->rows), ROW_THREADS, forward<E>, (E *)out, mean, rstd, (const E *)in, weight, bias,
           s->eps, s->rows, s->channels);
}

template <class E>
void run_backward(struct cuda *c, const struct layernorm_shape *s, void *din, float *dweight, float *dbias,
                  const void *dout, const void *in, const float *mean, const float *rstd, const float *weight)
{
    const E *dy = (const E *)dout;
    const E *x = (const E *)in;

    columns_sum(c, s->rows, s->channels, gradients_of<E>{dy, x, mean, rstd, s->channels},
                store_gradients{dweight, dbias});
    if (din)
        LAUNCH(c, row_blocks(s->rows), ROW_THREADS, input_gradient<E>, (E *)din, dy, x, weight, mean, rstd,
               s->rows, s->channels);
}

} // namespace

void cuda_layernorm_forward(struct kctx *ctx, const struct layernorm_shape *s, void *out, float *mean,
                            float *rstd, const void *in, const float *weight, const float *bias)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward, c, s, out, mean, rstd, in, weight, bias);
}

void cuda_layernorm_backward(struct kctx *ctx, const struct layernorm_shape *s, void *din, float *dweight,
                             float *dbias, const void *dout, const void *in, const float *mean,
                             const float *rstd, const float *weight)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, s, din, dweight, dbias, dout, in, mean, rstd, weight);
}
