/* dropout.cu - the generator of kernels/cpu/dropout.c, so a sample loses the same elements on every device. */
#include "kernels/cuda/grid.h"

namespace
{

struct draw {
    uint64_t seed, step;
    const int64_t *step_at;
    uint32_t layer;
    const uint32_t *samples;
};

/* A bijection of 64-bit words that spreads every bit: the finaliser of SplitMix64. */
__device__ uint64_t spread(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* A bijection of 32-bit words in which every bit of the result depends on all of x. */
__device__ uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

__global__ void forward(draw d, float *out, uint8_t *keep, const float *in, int64_t len, int64_t n,
                        uint32_t threshold, float scale)
{
    const uint64_t step = d.step_at ? (uint64_t)*d.step_at : d.step;
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        uint64_t key = spread(spread(spread(spread(d.seed) ^ step) ^ d.layer) ^ d.samples[i / len]);
        uint32_t at = (uint32_t)(i % len);
        uint32_t word = scramble(scramble(at + (uint32_t)key) ^ (uint32_t)(key >> 32));
        bool stays = word >> 8 >= threshold;
        keep[i] = stays;
        out[i] = stays ? in[i] * scale : 0.0F;
    }
}

__global__ void backward(float *din, const float *dout, const uint8_t *keep, float scale, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        din[i] = keep[i] ? dout[i] * scale : 0.0F;
}

float scale_of(const struct dropout_shape *s)
{
    return (float)(1 / (1 - s->p));
}

} // namespace

void cuda_dropout_forward(struct kctx *ctx, const struct dropout_shape *s, const struct dropout_draw *d,
                          float *out, uint8_t *keep, const float *in)
{
    const int64_t n = (int64_t)s->batch * (int64_t)s->len;
    const draw how = {d->seed, d->step, d->step_at, d->layer, d->samples};
    LAUNCH(cuda_of(ctx), blocks_for(n, EACH_THREADS), EACH_THREADS, forward, how, out, keep, in,
           (int64_t)s->len, n, (uint32_t)(s->p * (1 << 24)), scale_of(s));
}

void cuda_dropout_backward(struct kctx *ctx, const struct dropout_shape *s, float *din, const float *dout,
                           const uint8_t *keep)
{
    const int64_t n = (int64_t)s->batch * (int64_t)s->len;
    LAUNCH(cuda_of(ctx), blocks_for(n, EACH_THREADS), EACH_THREADS, backward, din, dout, keep, scale_of(s),
           n);
}
