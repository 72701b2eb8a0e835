/* reduce.h - element-wise sums of several vectors, in the order given.
 *
 * Shapes:    `n_src` vectors of n elements in, the same sum out to `n_dst` vectors. A destination may be one of
 *            the sources at the same place; anything else must not overlap.
 * Numerics:  src[0] + src[1] + ..., one rounding per addition, no contraction: the same bits at any vector width.
 */
#ifndef TK_COLLECTIVES_REDUCE_H
#define TK_COLLECTIVES_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

enum reduce_type { REDUCE_F32, REDUCE_F64 };

static inline size_t reduce_size(enum reduce_type type)
{
    return type == REDUCE_F32 ? sizeof(float) : sizeof(double);
}

void reduce_vectors(enum reduce_type type, void *const *dst, int n_dst, const void *const *src, int n_src,
                    size_t n);

/* The same by instructions that may not be the widest there are; for tests. */
enum reduce_isa { REDUCE_PLAIN, REDUCE_AVX2, REDUCE_AVX512 };
bool reduce_isa_supported(enum reduce_isa isa);
void reduce_vectors_by(enum reduce_isa isa, enum reduce_type type, void *const *dst, int n_dst,
                       const void *const *src, int n_src, size_t n);

#endif
