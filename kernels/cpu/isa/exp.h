/* exp.h - exp(x) for x <= 0, without branches, so that loops over it vectorise. */
#ifndef TK_KERNELS_ISA_EXP_H
#define TK_KERNELS_ISA_EXP_H

#include "kernels/cpu/isa/scalar.h"

#include <stdint.h>

/* e^y for y <= 0, within 2 units in the last place; 0 for what is below e^-87. NaN stays NaN. */
static inline float exp_down(float y)
{
    const float log2e = 1.44269504F;
    const float ln2_high = 0.693145752F; /* its product with a small integer is exact */
    const float ln2_low = 1.42860677e-6F;
    const float round = 12582912.0F; /* 1.5 x 2^23: what is added to it becomes an integer in its low bits */
    float at = y < -87.0F ? -87.0F : y;
    float shifted = fused(at, log2e, round);
    float n = shifted - round;
    float r = fused(n, -ln2_low, fused(n, -ln2_high, at));
    float p = 1.0F / 5040;
    uint32_t bits;
    float scale;
    p = fused(p, r, 1.0F / 720);
    p = fused(p, r, 1.0F / 120);
    p = fused(p, r, 1.0F / 24);
    p = fused(p, r, 1.0F / 6);
    p = fused(p, r, 0.5F);
    p = fused(p, r, 1.0F);
    p = fused(p, r, 1.0F);
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127U) << 23;
    __builtin_memcpy(&scale, &bits, sizeof scale);
    return y < -87.0F ? 0.0F : p * scale;
}

#endif
