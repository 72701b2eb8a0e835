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

template <class E> __device__ inline float value_of(enum gelu_form how, float x)
{
    return x * (how == GELU_TANH ? gate_of<E>(inner(x)) : normal(x));
}

template <class E> __device__ inline float slope_of(enum gelu_form how, float x)
{
    if (how != GELU_TANH)
        return normal(x) + x * 0.398942280F * expf(-0.5F * x * x);
    const float gate = gate_of<E>(inner(x));
    const float rise = 2.0F * gate * (1.0F - gate);
    const float slope = 0.797884561F * (1.0F + 3.0F * 0.044715F * x * x);
    /* Far out the rise is 0, and x times the slope may be infinite. */
    return gate + (rise == 0.0F ? 0.0F : x * rise * slope);
}

template <class E> __global__ void gelu_elements(enum gelu_form how, E *out, const E *in, pack_walk walk)
{
    constexpr int N = pack<E>::N;

    for (int64_t i = each_first(); i < walk.items; i += each_stride()) {
        if (i >= walk.packs) {
            const int64_t at = walk.packs * (N - 1) + i;
            out[at] = (E)value_of<E>(how, (float)in[at]);
            continue;
        }
        pack<E> x = load_pack(in + i * N);
        UNROLL
        for (int k = 0; k < N; k++)
            x.v[k] = (E)value_of<E>(how, (float)x.v[k]);
        store_pack(out + i * N, x);
    }
}

template <class E>
__global__ void gelu_gradient(enum gelu_form how, E *din, const E *dout, const E *in, pack_walk walk)
{
    constexpr int N = pack<E>::N;

    for (int64_t i = each_first(); i < walk.items; i += each_stride()) {
        if (i >= walk.packs) {
            const int64_t at = walk.packs * (N - 1) + i;
            din[at] = (E)((float)dout[at] * slope_of<E>(how, (float)in[at]));
            continue;
        }
        const pack<E> x = load_pack(in + i * N);
        pack<E> dy = load_pack(dout + i * N);
        UNROLL
        for (int k = 0; k < N; k++)
            dy.v[k] = (E)((float)dy.v[k] * slope_of<E>(how, (float)x.v[k]));
        store_pack(din + i * N, dy);
    }
}

template <class E> void run_forward(struct cuda *c, enum gelu_form how, void *out, const void *in, int64_t n)
{
    const pack_walk walk = pack_walk_of<E>(n, pack_aligned(out) && pack_aligned(in));

    LAUNCH(c, blocks_for(walk.items, EACH_THREADS), EACH_THREADS, gelu_elements<E>, how, (E *)out,
           (const E *)in, walk);
}

template <class E>
void run_backward(struct cuda *c, enum gelu_form how, void *din, const void *dout, const void *in, int64_t n)
{
    const pack_walk walk = pack_walk_of<E>(n, pack_aligned(din) && pack_aligned(dout) && pack_aligned(in));

    LAUNCH(c, blocks_for(walk.items, EACH_THREADS), EACH_THREADS, gelu_gradient<E>, how, (E *)din,
           (const E *)dout, (const E *)in, walk);
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
