/* normal_f32.h - normal float32 numbers by Box-Muller in blocks of 16, with the rounding of PyTorch's vector
 * kernel. torch_rng.c calls it. Pure. */
#ifndef TK_TRAINER_RNG_NORMAL_F32_H
#define TK_TRAINER_RNG_NORMAL_F32_H

#include <stddef.h>

enum { NORMAL_F32_BLOCK = 16 };

/* Replace n uniform numbers in [0, 1) by normal ones; n is a multiple of 16. Values j and j + 8 of a block
 * are the cosine and sine of one pair. */
void normal_f32_blocks(float *x, size_t n, float mean, float std);

#endif
