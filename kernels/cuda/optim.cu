/* optim.cu - one kernel over the flat buffers. Operations are rounded as on the CPU (kernels/cpu/isa/optim.c), each where
 * it is there, so both give the same bits: nothing is left for the compiler to fuse.
 */
#include "kernels/cuda/chance.cuh"
#include "kernels/cuda/element.cuh"

namespace
{

__device__ void adam_element(const struct adam_scalars &s, float *p, float *m, float *v, float g)
{
    float w = __fmul_rn(*p, s.decay);
    float grad = __fmaf_rn(s.l2, w, g);
    float m1 = __fmaf_rn(s.one_minus_beta1, __fadd_rn(grad, -*m), *m);
    float v1 = __fmaf_rn(__fmul_rn(s.one_minus_beta2, grad), grad, __fmul_rn(*v, s.beta2));
    float denom = __fadd_rn(sqrtf(v1) / s.bc2_sqrt, s.eps);
    *m = m1;
    *v = v1;
    *p = __fadd_rn(w, __fmul_rn(s.minus_step_size, m1) / denom);
}

__device__ void sgd_element(const struct sgd_scalars &s, float *p, float *u, float g)
{
    float step = __fmaf_rn(s.l2, *p, g);
    if (u) {
        float u1 = __fmaf_rn(s.one_minus_dampening, step, __fmul_rn(s.momentum, *u));
        *u = u1;
        step = s.nesterov ? __fmaf_rn(s.momentum, u1, step) : u1;
    }
    *p = __fmaf_rn(s.minus_lr, step, *p);
}

__global__ void adam(struct adam_scalars s, float *p, float *m, float *v, const float *g, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        adam_element(s, p + i, m + i, v + i, g[i]);
}

__global__ void sgd(struct sgd_scalars s, float *p, float *u, const float *g, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        sgd_element(s, p + i, u ? u + i : nullptr, g[i]);
}

/* The run goes on: nothing before, and not this step's loss, has been anything but a number. */
__device__ bool goes_on(const struct step_state *state, const float *loss)
{
    return !state->halted && isfinite(*loss);
}

/* With or without decay: what the span says that holds element i. */
__device__ int scalars_of(const struct queued_span *span, int spans, int64_t i)
{
    int low = 0;
    int high = spans - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (i < span[middle].end)
            high = middle;
        else
            low = middle + 1;
    }
    return span[low].decay;
}

/* A parameter's copy, behind so many steps of the run. */
__device__ void put_copy(const struct queued_params &w, uint64_t key, int64_t i)
{
    const uint32_t place = w.first + (uint32_t)i;
    bf16 *to = (bf16 *)w.copy + i;
    *to = w.by_chance ? bf16(w.p[i], chance_at(key, place) & 0xffffU) : (bf16)w.p[i];
}

__device__ uint64_t copy_key(const struct queued_params &w, int64_t steps)
{
    return spread(spread(w.seed) ^ (uint64_t)steps);
}

__global__ void round_all(struct queued_params w, int64_t steps)
{
    const uint64_t key = copy_key(w, steps);
    for (int64_t i = each_first(); i < (int64_t)w.n; i += each_stride())
        put_copy(w, key, i);
}

__global__ void adam_queued(const struct step_state *state, const float *loss, const float *scale,
                            const struct queued_span *span, int spans, struct queued_params w, float *m,
                            float *v, const float *g)
{
    if (!goes_on(state, loss))
        return;
    const float by = scale ? *scale : 1.0F;
    const uint64_t key = copy_key(w, state->now.step + 1);
    for (int64_t i = each_first(); i < (int64_t)w.n; i += each_stride()) {
        adam_element(state->now.adam[scalars_of(span, spans, i)], w.p + i, m + i, v + i, __fmul_rn(g[i], by));
        if (w.copy)
            put_copy(w, key, i);
    }
}

__global__ void sgd_queued(const struct step_state *state, const float *loss, const float *scale,
                           const struct queued_span *span, int spans, struct queued_params w, float *u,
                           const float *g)
{
    if (!goes_on(state, loss))
        return;
    const float by = scale ? *scale : 1.0F;
    const uint64_t key = copy_key(w, state->now.step + 1);
    for (int64_t i = each_first(); i < (int64_t)w.n; i += each_stride()) {
        sgd_element(state->now.sgd[scalars_of(span, spans, i)], w.p + i, u ? u + i : nullptr,
                    __fmul_rn(g[i], by));
        if (w.copy)
            put_copy(w, key, i);
    }
}

} // namespace

void cuda_adam_step(struct kctx *ctx, const struct adam_options *o, int64_t step, float *p, float *m,
                    float *v, const float *g, size_t n)
{
    LAUNCH(cuda_of(ctx), blocks_for((int64_t)n, EACH_THREADS), EACH_THREADS, adam, adam_scalars_of(o, step),
           p, m, v, g, (int64_t)n);
}

void cuda_sgd_step(struct kctx *ctx, const struct sgd_options *o, float *p, float *u, const float *g,
                   size_t n)
{
    LAUNCH(cuda_of(ctx), blocks_for((int64_t)n, EACH_THREADS), EACH_THREADS, sgd, sgd_scalars_of(o), p,
           o->momentum != 0 ? u : nullptr, g, (int64_t)n);
}

void cuda_queue_round(struct kctx *ctx, const struct queued_params *w, int64_t steps)
{
    LAUNCH(cuda_of(ctx), blocks_for((int64_t)w->n, EACH_THREADS), EACH_THREADS, round_all, *w, steps);
}

void cuda_queue_adam(struct kctx *ctx, const struct step_state *state, const float *loss, const float *scale,
                     const struct queued_span *span, int spans, const struct queued_params *w, float *m,
                     float *v, const float *g)
{
    LAUNCH(cuda_of(ctx), blocks_for((int64_t)w->n, EACH_THREADS), EACH_THREADS, adam_queued, state, loss,
           scale, span, spans, *w, m, v, g);
}

void cuda_queue_sgd(struct kctx *ctx, const struct step_state *state, const float *loss, const float *scale,
                    const struct queued_span *span, int spans, const struct queued_params *w, float *u,
                    const float *g)
{
    LAUNCH(cuda_of(ctx), blocks_for((int64_t)w->n, EACH_THREADS), EACH_THREADS, sgd_queued, state, loss,
           scale, span, spans, *w, u, g);
}
