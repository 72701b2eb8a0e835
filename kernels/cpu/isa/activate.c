/* activate.c - GELU, exact and by tanh, as plain loops that the compiler vectorises. */
#include "kernels/cpu/isa/exp.h"
#include "kernels/cpu/isa/local.h"

/* The normal distribution at x; *bell is e^(-x^2/2).
 *
 * Below 0 it is bell * R(|x|), where R(a) = erfcx(a / sqrt 2) / 2 is smooth: with t = 1 / (1 + a/4), R is t times
 * a polynomial of degree 9 (a Chebyshev fit for a in 0..13.5, within 2.3e-9). */
static inline float normal(float x, float *bell)
{
    float a = __builtin_fabsf(x);
    float t = 1.0F / fused(0.25F, a, 1.0F);
    float e = exp_down(-0.5F * x * x);
    float p = 0.0149936323F;
    p = fused(p, t, -0.054129511F);
    p = fused(p, t, 0.0311430443F);
    p = fused(p, t, 0.0560126943F);
    p = fused(p, t, -0.0104550662F);
    p = fused(p, t, 0.0992457237F);
    p = fused(p, t, 0.0675812657F);
    p = fused(p, t, 0.096480224F);
    p = fused(p, t, 0.0993738123F);
    p = fused(p, t, 0.0997541828F);
    float tail = e * (t * p);
    *bell = e;
    return x > 0 ? 1.0F - tail : tail;
}

/* 1 / (1 + e^-2u), which is (1 + tanh u) / 2; u = sqrt(2/pi) (x + 0.044715 x^3). *rise is its slope by 2u. */
static inline float smooth_step(float x, float *rise)
{
    float u = 0.797884561F * fused(0.044715F * x * x, x, x);
    float e = exp_down(-2.0F * __builtin_fabsf(u));
    float share = 1.0F / (1.0F + e);
    *rise = e * share * share;
    return (u > 0 ? 1.0F : e) * share;
}

void ISA_FN(gelu)(float *restrict out, const float *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float bell;
        out[i] = in[i] * normal(in[i], &bell);
    }
}

void ISA_FN(gelu_grad)(float *restrict din, const float *restrict dout, const float *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float bell;
        float p = normal(in[i], &bell);
        din[i] = dout[i] * fused(in[i] * 0.398942280F, bell, p);
    }
}

void ISA_FN(gelu_tanh)(float *restrict out, const float *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float rise;
        out[i] = in[i] * smooth_step(in[i], &rise);
    }
}

void ISA_FN(gelu_tanh_grad)(float *restrict din, const float *restrict dout, const float *restrict in,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = in[i];
        float rise;
        float s = smooth_step(x, &rise);
        float slope = 1.59576912F * fused(3.0F * 0.044715F * x, x, 1.0F); /* of 2u */
        /* Far out the rise is 0, and x times the slope may be infinite. */
        din[i] = dout[i] * (rise == 0.0F ? s : fused(x * rise, slope, s));
    }
}
