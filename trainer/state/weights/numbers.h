/* numbers.h - convert tensors' elements to f32. fill.c calls it. Pure.
 *
 * Numerics: bf16 and f16 to f32 are exact; f64 is rounded to nearest, ties to even.
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_NUMBERS_H
#define TK_TRAINER_STATE_WEIGHTS_NUMBERS_H

#include "trainer/state/files/tensor.h"

/* Whether the type is f32, f64, bf16 or f16. */
bool numbers_are_floats(enum pt_dtype dtype);

/* Convert `n` elements from index `first` on; data may be unaligned. Only of types for which numbers_are_floats is
 * true; out has room for n floats. */
void numbers_to_f32(const void *data, enum pt_dtype dtype, size_t first, size_t n, float *out);

/* Whether two tensors of floats, of any two types, have the same number of elements and, as f32, equal values. A NaN
 * equals nothing, shapes are not compared. False for other types. */
bool numbers_equal(const struct pt_tensor *a, const struct pt_tensor *b);

#endif
