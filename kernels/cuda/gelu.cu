/* gelu.cu - by the GPU's own erfc, exp and tanh. */
#include "kernels/cuda/element.cuh"

namespace
{

__device__ float normal(float x)
{
    return 0.5F * erfcf(-0.707106781F * x);
}

/* tanh u of the tanh form, and by how much u rises with x. */
__device__ float form(float x, float *slope)
{
    *slope = 0.797884561F * (1.0F + 3.0F * 0.044715F * x * x);
    return tanhf(0.797884561F * (x + 0.044715F * x * x * x));
}

template <class E> __global__ void forward(enum gelu_form how, E *out, const E *in, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        float x = in[i];
        float slope;
        out[i] = (E)(x * (how == GELU_TANH ? 0.5F * (1.0F + form(x, &slope)) : normal(x)));
    }
}

template <class E> __global__ void backward(enum gelu_form how, E *din, const E *dout, const E *in, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        float x = in[i];
        float d;
        if (how == GELU_TANH) {
            float slope;
            float t = form(x, &slope);
            float rise = 0.5F * (1.0F - t * t);
            /* Far out the rise is 0, and x times the slope may be infinite. */
            d = 0.5F * (1.0F + t) + (rise == 0.0F ? 0.0F : x * rise * slope);
        } else {
            d = normal(x) + x * 0.398942280F * expf(-0.5F * x * x);
        }
        din[i] = (E)(dout[i] * d);
    }
}

template <class E> void run_forward(struct cuda *c, enum gelu_form how, void *out, const void *in, int64_t n)
{
    LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, forward<E>, how, (E *)out, (const E *)in, n);
}

template <class E>
void run_backward(struct cuda *c, enum gelu_form how, void *din, const void *dout, const void *in, int64_t n)
{
    LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, backward<E>, how, (E *)din, (const E *)dout,
           (const E *)in, n);
}

} // namespace

void cuda_gelu_forward(struct kctx *ctx, enum gelu_form how, void *out, const void *in, size_t n)
{
    struct cuda *c = cuda_of(ctx);
    if (n)
        ELEMENT_CALL(c, run_forward, c, how, out, in, (int64_t)n);
}

void cuda_gelu_backward(struct kctx *ctx, enum gelu_form how, void *din, const void *dout, const void *in,
                        size_t n)
{
    struct cuda *c = cuda_of(ctx);
    if (n)
        ELEMENT_CALL(c, run_backward, c, how, din, dout, in, (int64_t)n);
}
