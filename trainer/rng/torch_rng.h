/* torch_rng.h - PyTorch's CPU random generator: the same seed gives the same bits. data/, model/ and
 * pipeline/ call it.
 *
 * Pure: a plain struct, copied by assignment; no clock, environment or file.
 * Order:    every call draws in the order of PyTorch's call of the same name, so a program with the same
 *           calls gets the same numbers as after torch.manual_seed(seed).
 * Numerics: bit-exact with PyTorch's x86-64 kernels (AVX2 or newer). */
#ifndef TK_TRAINER_RNG_TORCH_RNG_H
#define TK_TRAINER_RNG_TORCH_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TORCH_RNG_WORDS = 624 };

struct torch_rng {
    uint32_t words[TORCH_RNG_WORDS]; /* mt19937 */
    int32_t left;                    /* words before the next twist, plus one */
    int32_t next;                    /* index of the next word */
    bool normal_held;                /* `normal` has the second Box-Muller sample */
    double normal;
};

/* torch.manual_seed(seed): mt19937 takes the low 32 bits. */
void torch_rng_seed(struct torch_rng *g, uint64_t seed);

uint32_t torch_rng_u32(struct torch_rng *g);
uint64_t torch_rng_u64(struct torch_rng *g); /* two words, the first is the high one */

/* tensor.uniform_(from, to) on n float32 values; both ends are rounded to float32 first. */
void torch_rng_uniform(struct torch_rng *g, double from, double to, float *out, size_t n);

/* tensor.normal_(mean, std) on n float32 values of a contiguous tensor: PyTorch fills blocks of 16 if n >=
 * 16; else it draws one value at a time in double. */
void torch_rng_normal(struct torch_rng *g, double mean, double std, float *out, size_t n);

/* The number of 32-bit words that it draws for n >= 16. */
static inline uint64_t torch_rng_normal_words(size_t n)
{
    return n + (n % 16 ? 16 : 0);
}

/* torch.randperm(n, generator=g). n <= INT32_MAX. */
void torch_rng_randperm(struct torch_rng *g, uint32_t *out, size_t n);

#endif
