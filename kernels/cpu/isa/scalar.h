/* scalar.h - helpers that the plain loops of this folder share. */
#ifndef TK_KERNELS_ISA_SCALAR_H
#define TK_KERNELS_ISA_SCALAR_H

/* a b + c, rounded once where the set has FMA. */
static inline float fused(float a, float b, float c)
{
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

#endif
