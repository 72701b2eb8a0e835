/* relu.cu - ReLU and its gradient on a GPU. */
#include "kernels/cuda/vector.cuh"

namespace
{

struct relu_value {
    __device__ float operator()(float x) const
    {
        return x < 0 ? 0.0F : x; /* NaN stays */
    }
};

struct relu_gradient {
    __device__ float operator()(float dout, float out) const
    {
        return out > 0 ? dout : 0.0F;
    }
};

} // namespace

void cuda_relu_forward(struct kctx *ctx, float *out, const float *in, size_t n)
{
    map(cuda_of(ctx), n, relu_value(), out, in);
}

void cuda_relu_backward(struct kctx *ctx, float *din, const float *dout, const float *out, size_t n)
{
    map(cuda_of(ctx), n, relu_gradient(), din, dout, out);
}
