/* fill.h - the same number everywhere in a device buffer.
 *
 * Stream: queued on `stream` (a cudaStream_t); the buffer is filled once that has run.
 * Errors: ERR_FATAL when the launch failed; nothing is queued then.
 */
#ifndef TK_KERNELS_CUDA_FILL_H
#define TK_KERNELS_CUDA_FILL_H

#include "common/err.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

int cuda_fill(float *x, float value, size_t n, void *stream, struct err *err);

#ifdef __cplusplus
}
#endif

#endif
