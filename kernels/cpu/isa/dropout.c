/* dropout.c - choose which elements of one sample dropout keeps, by a hash of the sample's key and the element's index. */
#include "kernels/cpu/isa/local.h"

/* A bijection of 32-bit words in which every bit of the result depends on all of x. */
static inline uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

void ISA_FN(dropout)(const struct isa_dropout *d, float *restrict out, uint8_t *restrict keep,
                     const float *restrict in, size_t n)
{
    const struct isa_dropout s = *d;
    for (size_t i = 0; i < n; i++) {
        uint32_t word = scramble(scramble((uint32_t)i + s.key[0]) ^ s.key[1]);
        uint8_t stays = word >> 8 >= s.threshold;
        keep[i] = stays;
        out[i] = stays ? in[i] * s.scale : 0.0F;
    }
}

void ISA_FN(dropout_grad)(float *restrict din, const float *restrict dout, const uint8_t *restrict keep,
                          float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        din[i] = keep[i] ? dout[i] * scale : 0.0F;
}
