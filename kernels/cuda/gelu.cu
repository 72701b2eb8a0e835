/* gelu.cu - GELU on a GPU, in f32 and bf16. */
#include "kernels/cuda/vector.cuh"

namespace
{

/* How much of x passes: (1 + tanh u) / 2, which is 1 / (1 + e^-2u). */
template <class E> __device__ inline float gate_of(float u)
{
    return 0.5F * (1.0F + tanhf(u));
}

template <> __device__ inline float gate_of<bf16>(float u)
{
    return quick_divide(1.0F, 1.0F + quick_exp2(-2.88539008F * u));
}

__device__ inline float normal(float x)
{
    return 0.5F * erfcf(-0.707106781F * x);
}

/* u of the tanh form. */
__device__ inline float inner(float x)
{
    return 0.797884561F * (x + 0.044715F * x * x * x);
}

template <class E> struct gelu_value {
    enum gelu_form how;
    __device__ float operator()(float x) const
    {
        return x * (how == GELU_TANH ? gate_of<E>(inner(x)) : normal(x));
    }
};

template <class E> struct gelu_gradient {
    enum gelu_form how;
    __device__ float slope(float x) const
    {
        if (how != GELU_TANH)
            return normal(x) + x * 0.398942280F * expf(-0.5F * x * x);
        const float gate = gate_of<E>(inner(x));
        const float rise = 2.0F * gate * (1.0F - gate);
        const float steep = 0.797884561F * (1.0F + 3.0F * 0.044715F * x * x);
        /* Far out the rise is 0, and x times the slope may be infinite. */
        return gate + (rise == 0.0F ? 0.0F : x * rise * steep);
    }
    __device__ float operator()(float dout, float x) const
    {
        return dout * slope(x);
    }
};

template <class E> void run_forward(struct cuda *c, enum gelu_form how, void *out, const void *in, size_t n)
{
    map(c, n, gelu_value<E>{how}, (E *)out, (const E *)in);
}

template <class E>
void run_backward(struct cuda *c, enum gelu_form how, void *din, const void *dout, const void *in, size_t n)
{
    map(c, n, gelu_gradient<E>{how}, (E *)din, (const E *)dout, (const E *)in);
}

} // namespace

void cuda_gelu_forward(struct kctx *ctx, enum gelu_form how, void *out, const void *in, size_t n)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward, c, how, out, in, n);
}

void cuda_gelu_backward(struct kctx *ctx, enum gelu_form how, void *din, const void *dout, const void *in,
                        size_t n)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, how, din, dout, in, n);
}
