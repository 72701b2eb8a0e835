/* attention.h - attention on a GPU in two paths, a fast one by tensor cores and a plain one for everything else.
 *
 *     fast    attention_fast.cu      bf16, heads of 64 numbers, addresses at multiples of 16 bytes
 *     plain   attention_plain.cuh    f32 or bf16, any size of a head, any alignment
 *
 * attention.cu asks attention_fast which, forwards and backwards apart: out and lse mean the same on both.
 *
 * Numerics:  sums are f32 in a fixed order. Weights are rounded to bf16 on the fast path, and are f32 on the plain one.
 */
#ifndef TK_KERNELS_CUDA_ATTENTION_H
#define TK_KERNELS_CUDA_ATTENTION_H

#include "kernels/cuda/cuda.h"

enum { ATTENTION_FAST_SIZE = 64 };

#ifdef __cplusplus
extern "C"
#endif
    /* dout: NULL forwards. */
    bool
    attention_fast(enum element element, const struct attention_shape *s, const void *qkv, const void *dout);

#endif
