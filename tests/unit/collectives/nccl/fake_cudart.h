/* fake_cudart.h - streams in host memory, for tests of what waits on them.
 *
 * A stream is a queue of steps; a step is polled until it is done, and only when somebody waits for the stream or for an
 * event on it. No threads: what a rank waits for proceeds while it waits.
 */
#ifndef TK_TESTS_UNIT_COLLECTIVES_NCCL_FAKE_CUDART_H
#define TK_TESTS_UNIT_COLLECTIVES_NCCL_FAKE_CUDART_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* True when done; then it is not asked again. */
void fake_stream_push(cudaStream_t stream, bool (*step)(void *arg), void *arg);

/* Is the stream being recorded? None of these ever is; those of tests/fakes/cuda are. */
bool fake_stream_records(cudaStream_t stream);

/* The next query answers this, as a GPU that fails does. */
void fake_stream_break(cudaStream_t stream, cudaError_t error);

#endif
