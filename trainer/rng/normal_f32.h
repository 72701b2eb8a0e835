/* normal_f32.h - normal float32 numbers by Box-Muller over blocks of 16, rounded as PyTorch's vector kernel. Pure. */
#ifndef TK_TRAINER_RNG_NORMAL_F32_H
#define TK_TRAINER_RNG_NORMAL_F32_H

#include <stddef.h>

enum { NORMAL_F32_BLOCK = 16 };

/* In place: n (a multiple of 16) uniforms in [0, 1) become normals. Values j and j + 8 of a block are the cosine
 * and sine of one pair. */
void normal_f32_blocks(float *x, size_t n, float mean, float std);

#endif
