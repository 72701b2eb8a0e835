/* reduce.h - element-wise sum of several vectors, in the order given; for bytes their bitwise OR.
 * host_reduce.c and pods_*.c call it.
 *
 * Shapes:    dst[d][i] = src[0][i] + src[1][i] + ... for n elements, n_src sources (at least 1) and n_dst
 *            destinations, which all get the same sum. A destination may be equal to a source; other overlaps
 *            are not allowed. Vectors need their element's alignment only.
 * Numerics:  additions in the order of sources, one rounding each, no contraction: the same bits at any vector
 *            width.
 */
#ifndef TK_COLLECTIVES_REDUCE_H
#define TK_COLLECTIVES_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

enum reduce_type { REDUCE_F32, REDUCE_F64, REDUCE_OR };

/* Bytes of one element. */
static inline size_t reduce_size(enum reduce_type type)
{
    return type == REDUCE_F32 ? sizeof(float) : type == REDUCE_F64 ? sizeof(double) : 1;
}

void reduce_vectors(enum reduce_type type, void *const *dst, int n_dst, const void *const *src, int n_src,
                    size_t n);

/* The same with a given instruction set instead of the widest one that the processor supports; for tests. */
enum reduce_isa { REDUCE_PLAIN, REDUCE_AVX2, REDUCE_AVX512 };
bool reduce_isa_supported(enum reduce_isa isa);
void reduce_vectors_by(enum reduce_isa isa, enum reduce_type type, void *const *dst, int n_dst,
                       const void *const *src, int n_src, size_t n);

#endif
