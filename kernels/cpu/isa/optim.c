/* optim.c - optimiser steps. Built without contraction: torch.optim's operations are rounded one by one, but for
 * those that end in a sum with a product (add with alpha, addcmul, lerp), which it fuses. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/scalar.h"

static void adam(const struct adam_scalars *a, float *restrict p, float *restrict m, float *restrict v,
                 const float *restrict g, size_t n)
{
    const struct adam_scalars s = *a;
    for (size_t i = 0; i < n; i++) {
        float w = p[i] * s.decay;
        float grad = fused(s.l2, w, g[i]);
        float m1 = fused(s.one_minus_beta1, grad - m[i], m[i]);
        float v1 = fused(s.one_minus_beta2 * grad, grad, v[i] * s.beta2);
        float denom = __builtin_sqrtf(v1) / s.bc2_sqrt + s.eps;
        m[i] = m1;
        v[i] = v1;
        p[i] = w + s.minus_step_size * m1 / denom;
    }
}

static void sgd_plain(const struct sgd_scalars *a, float *restrict p, const float *restrict g, size_t n)
{
    const struct sgd_scalars s = *a;
    for (size_t i = 0; i < n; i++)
        p[i] = fused(s.minus_lr, fused(s.l2, p[i], g[i]), p[i]);
}

static void sgd_momentum(const struct sgd_scalars *a, float *restrict p, float *restrict m,
                         const float *restrict g, size_t n)
{
    const struct sgd_scalars s = *a;
    for (size_t i = 0; i < n; i++) {
        float g1 = fused(s.l2, p[i], g[i]);
        float m1 = fused(s.one_minus_dampening, g1, s.momentum * m[i]);
        m[i] = m1;
        p[i] = fused(s.minus_lr, s.nesterov ? fused(s.momentum, m1, g1) : m1, p[i]);
    }
}

void ISA_FN(update)(const struct update_scalars *s, float *p, float *m, float *v, const float *g, size_t n)
{
    switch (s->rule) {
    case UPDATE_ADAM:
        adam(&s->adam, p, m, v, g, n);
        break;
    case UPDATE_SGD:
        if (m)
            sgd_momentum(&s->sgd, p, m, g, n);
        else
            sgd_plain(&s->sgd, p, g, n);
        break;
    }
}
