/* optim.cu - update parameters: one kernel over the flat buffers, by packs. Operations are rounded as on the CPU
 * (kernels/cpu/isa/optim.c), each where it is there, so both give the same bits: nothing is left for the compiler to fuse.
 */
#include "kernels/cuda/vector.cuh"

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

/* The run goes on: nothing before, and not this step's loss, has been anything but a number. */
__device__ bool goes_on(const struct step_state *state, const float *loss)
{
    return !state->halted && isfinite(*loss);
}

/* The span that holds element i. */
__device__ int span_at(const struct queued_span *span, int spans, int64_t i)
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
    return low;
}

/* What passes read instead of p. */
template <int N> __device__ piece<bf16, N> copies_of(const piece<float, N> &p)
{
    piece<bf16, N> copy;
    UNROLL
    for (int k = 0; k < N; k++)
        copy.v[k] = (bf16)p.v[k];
    return copy;
}

__global__ void optim_round(struct queued_params w)
{
    for (int64_t i = each_first(); i < (int64_t)w.n; i += each_stride())
        ((bf16 *)w.copy)[i] = (bf16)w.p[i];
}

/* What every parameter's update takes. */
struct update_args {
    const struct step_state *state;
    const float *loss, *scale;
    const struct queued_span *span;
    int spans;
    struct queued_params w;
    const float *g;
};

struct adam_rule {
    float *m, *v;
    template <int N> struct moments {
        piece<float, N> m, v;
    };
    template <int N> __device__ moments<N> load(int64_t i) const
    {
        return moments<N>{load_piece<float, N>(m + i), load_piece<float, N>(v + i)};
    }
    template <int N> __device__ void store(int64_t i, const moments<N> &x) const
    {
        store_piece(m + i, x.m);
        store_piece(v + i, x.v);
    }
    template <int N>
    __device__ void step(const update_scalars &s, float *p, moments<N> *x, int k, float g) const
    {
        adam_element(s.adam, p, &x->m.v[k], &x->v.v[k], g);
    }
};

struct sgd_rule {
    float *m; /* NULL: without momentum */
    template <int N> struct moments {
        piece<float, N> m;
    };
    template <int N> __device__ moments<N> load(int64_t i) const
    {
        return m ? moments<N>{load_piece<float, N>(m + i)} : moments<N>{};
    }
    template <int N> __device__ void store(int64_t i, const moments<N> &x) const
    {
        if (m)
            store_piece(m + i, x.m);
    }
    template <int N>
    __device__ void step(const update_scalars &s, float *p, moments<N> *x, int k, float g) const
    {
        sgd_element(s.sgd, p, m ? &x->m.v[k] : nullptr, g);
    }
};

/* N neighbours from i on. */
template <int N, class Rule>
__device__ inline void update_piece(const update_args &u, const Rule &rule, float by, int64_t i)
{
    const piece<float, N> g = load_piece<float, N>(u.g + i);
    piece<float, N> p = load_piece<float, N>(u.w.p + i);
    typename Rule::template moments<N> x = rule.template load<N>(i);
    int at = span_at(u.span, u.spans, i);
    UNROLL
    for (int k = 0; k < N; k++) {
        while (i + k >= u.span[at].end)
            at++;
        rule.step(u.state->now.update[u.span[at].decay], &p.v[k], &x, k, __fmul_rn(g.v[k], by));
    }
    store_piece(u.w.p + i, p);
    rule.store(i, x);
    if (u.w.copy)
        store_piece((bf16 *)u.w.copy + i, copies_of<N>(p));
}

/* N neighbours at a time, then what is left one by one. */
template <class Rule, int N> __global__ void optim_update(update_args u, Rule rule)
{
    if (!goes_on(u.state, u.loss))
        return;
    const float by = u.scale ? *u.scale : 1.0F;
    const int64_t pieces = (int64_t)u.w.n / N;
    for (int64_t i = each_first(); i < pieces; i += each_stride())
        update_piece<N>(u, rule, by, i * N);
    if (pieces * N + each_first() < (int64_t)u.w.n)
        update_piece<1>(u, rule, by, pieces * N + each_first());
}

template <class Rule>
void queue_rule(struct cuda *c, const update_args &u, Rule rule, const float *m, const float *v)
{
    constexpr int N = 4;
    const int64_t n = (int64_t)u.w.n;

    if (pack_aligned(m) && pack_aligned(v) && pack_aligned(u.w.p) && pack_aligned(u.g) &&
        (uintptr_t)u.w.copy % (N * sizeof(bf16)) == 0)
        LAUNCH(c, blocks_for(ceil_div(n, N), EACH_THREADS), EACH_THREADS, (optim_update<Rule, N>), u, rule);
    else
        LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, (optim_update<Rule, 1>), u, rule);
}

} // namespace

void cuda_queue_round(struct kctx *ctx, const struct queued_params *w)
{
    LAUNCH(cuda_of(ctx), blocks_for((int64_t)w->n, EACH_THREADS), EACH_THREADS, optim_round, *w);
}

void cuda_queue_update(struct kctx *ctx, enum update_rule rule, const struct step_state *state,
                       const float *loss, const float *scale, const struct queued_span *span, int spans,
                       const struct queued_params *w, float *m, float *v, const float *g)
{
    const update_args u{state, loss, scale, span, spans, *w, g};

    switch (rule) {
    case UPDATE_ADAM:
        queue_rule(cuda_of(ctx), u, adam_rule{m, v}, m, v);
        break;
    case UPDATE_SGD:
        queue_rule(cuda_of(ctx), u, sgd_rule{m}, m, v);
        break;
    }
}
