/* bf16.h - f32 numbers to bf16 and back, for the tests of kernels: to the nearest, ties to even; a NAN stays one. */
#ifndef TK_TESTS_UNIT_KERNELS_CUDA_BF16_H
#define TK_TESTS_UNIT_KERNELS_CUDA_BF16_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void bf16_from_f32(const float *in, size_t n, uint16_t *out)
{
    uint32_t bits;

    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &in[i], sizeof(bits));
        out[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40
                                                             : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

static inline void bf16_to_f32(const uint16_t *in, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(&out[i], &bits, sizeof(bits));
    }
}

#endif
