/* dropout.cu - dropout on a GPU, with the random numbers of kernels/cpu/dropout.c: every device drops the same elements. */
#include "kernels/cuda/element.cuh"

namespace
{

/* A bijection of 64-bit words that spreads every bit: the finaliser of SplitMix64. */
__device__ inline uint64_t spread(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* A bijection of 32-bit words in which every bit of the result depends on all of x. */
__device__ inline uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

/* Of a key that `spread` made: the word at a place. */
__device__ inline uint32_t chance_at(uint64_t key, uint32_t place)
{
    return scramble(scramble(place + (uint32_t)key) ^ (uint32_t)(key >> 32));
}

struct draw {
    uint64_t seed, step;
    const int64_t *step_at;
    uint32_t layer;
    const uint32_t *samples;
};

template <class E>
__global__ void dropout_elements(draw d, E *out, uint8_t *keep, const E *in, int64_t len, int64_t n,
                                 uint32_t threshold, float scale)
{
    const uint64_t step = d.step_at ? (uint64_t)*d.step_at : d.step;
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        uint64_t key = spread(spread(spread(spread(d.seed) ^ step) ^ d.layer) ^ d.samples[i / len]);
        bool stays = chance_at(key, (uint32_t)(i % len)) >> 8 >= threshold;
        keep[i] = stays;
        out[i] = (E)(stays ? in[i] * scale : 0.0F);
    }
}

template <class E>
__global__ void dropout_gradient(E *din, const E *dout, const uint8_t *keep, float scale, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        din[i] = (E)(keep[i] ? dout[i] * scale : 0.0F);
}

float scale_of(const struct dropout_shape *s)
{
    return (float)(1 / (1 - s->p));
}

template <class E>
void run_forward(struct cuda *c, const struct dropout_shape *s, const struct dropout_draw *d, void *out,
                 uint8_t *keep, const void *in)
{
    const int64_t n = (int64_t)s->batch * (int64_t)s->len;
    const draw how = {d->seed, d->step, d->step_at, d->layer, d->samples};
    LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, dropout_elements<E>, how, (E *)out, keep,
           (const E *)in, (int64_t)s->len, n, (uint32_t)(s->p * (1 << 24)), scale_of(s));
}

template <class E>
void run_backward(struct cuda *c, const struct dropout_shape *s, void *din, const void *dout,
                  const uint8_t *keep)
{
    const int64_t n = (int64_t)s->batch * (int64_t)s->len;
    LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, dropout_gradient<E>, (E *)din, (const E *)dout, keep,
           scale_of(s), n);
}

} // namespace

void cuda_dropout_forward(struct kctx *ctx, const struct dropout_shape *s, const struct dropout_draw *d,
                          void *out, uint8_t *keep, const void *in)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward, c, s, d, out, keep, in);
}

void cuda_dropout_backward(struct kctx *ctx, const struct dropout_shape *s, void *din, const void *dout,
                           const uint8_t *keep)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, s, din, dout, keep);
}
