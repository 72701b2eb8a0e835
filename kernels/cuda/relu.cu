/* relu.cu - ReLU and its gradient on a GPU. */
#include "kernels/cuda/grid.h"

namespace
{

__global__ void relu_elements(float *out, const float *in, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        out[i] = in[i] < 0 ? 0.0F : in[i]; /* NaN stays */
}

__global__ void relu_gradient(float *din, const float *dout, const float *out, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        din[i] = out[i] > 0 ? dout[i] : 0.0F;
}

} // namespace

void cuda_relu_forward(struct kctx *ctx, float *out, const float *in, size_t n)
{
    if (n)
        LAUNCH(cuda_of(ctx), blocks_for((int64_t)n, EACH_THREADS), EACH_THREADS, relu_elements, out, in,
               (int64_t)n);
}

void cuda_relu_backward(struct kctx *ctx, float *din, const float *dout, const float *out, size_t n)
{
    if (n)
        LAUNCH(cuda_of(ctx), blocks_for((int64_t)n, EACH_THREADS), EACH_THREADS, relu_gradient, din, dout,
               out, (int64_t)n);
}
