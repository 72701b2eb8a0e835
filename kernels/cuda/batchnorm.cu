/* batchnorm.cu - batch normalisation on a GPU: sums of columns, then one pass over the elements. */
#include "kernels/cuda/columns.cuh"

namespace
{

struct batchnorm_sum {
    typedef float E;
    static constexpr int N = 1;
    static constexpr int COLS = 1;
    const float *x;
    int cols;
    __device__ void add(int row, int col, double *v) const
    {
        v[0] += (double)x[(int64_t)row * cols + col];
    }
};

struct batchnorm_squares {
    typedef float E;
    static constexpr int N = 1;
    static constexpr int COLS = 1;
    const float *x, *mean;
    int cols;
    __device__ void add(int row, int col, double *v) const
    {
        double d = (double)x[(int64_t)row * cols + col] - (double)mean[col];
        v[0] += d * d;
    }
};

struct batchnorm_store_mean {
    float *mean, *running;
    int rows;
    double momentum;
    __device__ void put(int col, const double *sum) const
    {
        mean[col] = (float)(sum[0] / rows);
        running[col] = (float)((1 - momentum) * (double)running[col] + momentum * (double)mean[col]);
    }
};

struct batchnorm_store_variance {
    float *rstd, *running;
    int rows;
    double momentum, eps;
    __device__ void put(int col, const double *square) const
    {
        double var = square[0] / rows;
        double of_sample = rows > 1 ? square[0] / (rows - 1) : var;
        running[col] = (float)((1 - momentum) * (double)running[col] + momentum * of_sample);
        rstd[col] = (float)(1 / sqrt(var + eps));
    }
};

__global__ void batchnorm_take_running(float *mean, float *rstd, const float *running_mean,
                                       const float *running_var, double eps, int cols)
{
    for (int64_t c = each_first(); c < cols; c += each_stride()) {
        mean[c] = running_mean[c];
        rstd[c] = (float)(1 / sqrt((double)running_var[c] + eps));
    }
}

__global__ void batchnorm_normalise(float *out, const float *in, const float *mean, const float *rstd,
                                    const float *weight, const float *bias, int cols, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        int c = (int)(i % cols);
        float scale = __fmul_rn(weight[c], rstd[c]);
        float shift = __fadd_rn(bias[c], -__fmul_rn(mean[c], scale));
        out[i] = __fmaf_rn(in[i], scale, shift);
    }
}

struct batchnorm_gradients {
    typedef float E;
    static constexpr int N = 2;
    static constexpr int COLS = 1;
    const float *dout, *x, *mean;
    int cols;
    __device__ void add(int row, int col, double *v) const
    {
        int64_t i = (int64_t)row * cols + col;
        v[0] += (double)dout[i];
        v[1] += (double)dout[i] * (double)(x[i] - mean[col]);
    }
};

struct batchnorm_store {
    float *dweight, *dbias, *dmean, *dvar;
    const float *rstd;
    int rows;
    bool train;
    __device__ void put(int col, const double *sum) const
    {
        double s = (double)rstd[col];
        dbias[col] = (float)sum[0];
        dweight[col] = (float)(sum[1] * s);
        /* Running statistics do not depend on the batch. */
        dmean[col] = train ? (float)(sum[0] / rows) : 0.0F;
        dvar[col] = train ? (float)(sum[1] * s * s / rows) : 0.0F;
    }
};

__global__ void batchnorm_input_gradient(float *din, const float *dout, const float *in, const float *mean,
                                         const float *rstd, const float *weight, const float *dmean,
                                         const float *dvar, int cols, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        int c = (int)(i % cols);
        float d = dout[i] - dmean[c];
        din[i] = weight[c] * rstd[c] * __fmaf_rn(mean[c] - in[i], dvar[c], d);
    }
}

} // namespace

void cuda_batchnorm_forward(struct kctx *ctx, const struct batchnorm_shape *s, bool train, float *out,
                            float *mean, float *rstd, float *running_mean, float *running_var,
                            const float *in, const float *weight, const float *bias)
{
    struct cuda *c = cuda_of(ctx);
    const int cols = s->channels;
    const int64_t n = (int64_t)s->rows * cols;

    if (train) {
        columns_sum(c, s->rows, cols, batchnorm_sum{in, cols},
                    batchnorm_store_mean{mean, running_mean, s->rows, s->momentum});
        columns_sum(c, s->rows, cols, batchnorm_squares{in, mean, cols},
                    batchnorm_store_variance{rstd, running_var, s->rows, s->momentum, s->eps});
    } else {
        LAUNCH(c, blocks_for(cols, EACH_THREADS), EACH_THREADS, batchnorm_take_running, mean, rstd,
               running_mean, running_var, s->eps, cols);
    }
    LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, batchnorm_normalise, out, in, mean, rstd, weight,
           bias, cols, n);
}

void cuda_batchnorm_backward(struct kctx *ctx, const struct batchnorm_shape *s, bool train, float *din,
                             float *dweight, float *dbias, const float *dout, const float *in,
                             const float *mean, const float *rstd, const float *weight)
{
    struct cuda *c = cuda_of(ctx);
    const int cols = s->channels;
    const int64_t n = (int64_t)s->rows * cols;
    float *dmean =
        (float *)cuda_scratch(c, 2 * (size_t)cols * sizeof(float)); /* batchnorm_workspace_bytes has it */
    float *dvar = dmean + cols;

    columns_sum(c, s->rows, cols, batchnorm_gradients{dout, in, mean, cols},
                batchnorm_store{dweight, dbias, dmean, dvar, rstd, s->rows, train});
    if (din)
        LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, batchnorm_input_gradient, din, dout, in, mean,
               rstd, weight, dmean, dvar, cols, n);
}
