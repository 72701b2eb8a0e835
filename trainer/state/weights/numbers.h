/* numbers.h - tensors' elements as f32. Pure.
 *
 * Numerics: bf16 and f16 to f32 are exact; f64 is rounded to nearest, ties to even.
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_NUMBERS_H
#define TK_TRAINER_STATE_WEIGHTS_NUMBERS_H

#include "trainer/state/files/tensor.h"

/* f32, f64, bf16 or f16. */
bool numbers_are_floats(enum pt_dtype dtype);

/* `n` elements from the `first` on, of data that may be unaligned. */
void numbers_to_f32(const void *data, enum pt_dtype dtype, size_t first, size_t n, float *out);

/* Have two tensors the same elements, whatever floats they are? Of others: no. */
bool numbers_equal(const struct pt_tensor *a, const struct pt_tensor *b);

#endif
