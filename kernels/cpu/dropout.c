/* dropout.c - dropout sample by sample, each with its own random key. */
#include "kernels/dropout.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"

struct job {
    const struct dropout_shape *s;
    const struct dropout_draw *draw;
    const struct isa_ops *ops;
    float *to;
    uint8_t *keep;
    const float *from;
    const uint8_t *kept; /* backward */
};

/* A bijection of 64-bit words that spreads every bit: the finaliser of SplitMix64. */
static uint64_t spread(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static uint64_t key_of(const struct dropout_draw *d, int i)
{
    return spread(spread(spread(spread(d->seed) ^ d->step) ^ d->layer) ^ d->samples[i]);
}

static float scale_of(const struct dropout_shape *s)
{
    return (float)(1 / (1 - s->p));
}

static void forward_samples(void *arg, int begin, int end)
{
    const struct job *j = arg;
    for (int i = begin; i < end; i++) {
        uint64_t key = key_of(j->draw, i);
        size_t at = (size_t)i * j->s->len;
        struct isa_dropout d = {.key = {(uint32_t)key, (uint32_t)(key >> 32)},
                                .threshold = (uint32_t)(j->s->p * (1 << 24)),
                                .scale = scale_of(j->s)};
        j->ops->dropout(&d, j->to + at, j->keep + at, j->from + at, j->s->len);
    }
}

void cpu_dropout_forward(struct kctx *ctx, const struct dropout_shape *s, const struct dropout_draw *draw,
                         void *out, uint8_t *keep, const void *in)
{
    struct job j = {.s = s, .draw = draw, .ops = kctx_ops(ctx), .to = out, .keep = keep, .from = in};
    kctx_run(ctx, s->batch, forward_samples, &j);
}

static void backward_samples(void *arg, int begin, int end)
{
    const struct job *j = arg;
    size_t at = (size_t)begin * j->s->len;
    size_t n = (size_t)(end - begin) * j->s->len;
    j->ops->dropout_grad(j->to + at, j->from + at, j->kept + at, scale_of(j->s), n);
}

void cpu_dropout_backward(struct kctx *ctx, const struct dropout_shape *s, void *din, const void *dout,
                          const uint8_t *keep)
{
    struct job j = {.s = s, .ops = kctx_ops(ctx), .to = din, .kept = keep, .from = dout};
    kctx_run(ctx, s->batch, backward_samples, &j);
}
