/* cudart.h - what tests set in the fake CUDA runtime (cudart.cc). */
#ifndef TK_TESTS_FAKES_CUDA_CUDART_H
#define TK_TESTS_FAKES_CUDA_CUDART_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

enum { FAKE_CUDART_DEVICES = 2 };

#ifdef __cplusplus
extern "C" {
#endif

/* The call of `function` behind the next `calls` ones fails, once. */
void fake_cudart_fail(const char *function, int calls);

/* The epilogue (a cublasLtEpilogue_t) that cuBLAS has no algorithm for from now on. 0: none. */
void fake_cublas_lacks(int epilogue);

/* The status (a cublasStatus_t) of cuBLAS's next product, which is then not computed. */
void fake_cublas_fails(int status);

/* Whether cuBLAS's library is missing from now on. */
void fake_cublas_missing(bool on);

/* Bytes of device memory that there are from now on. */
void fake_cudart_memory(size_t bytes);

/* Kernels launched so far, cuBLAS's not among them. */
unsigned long emulate_launches(void);

/* Pieces of device memory that nobody has freed. */
int fake_cudart_pieces(void);
size_t fake_cudart_bytes(void);

/* For the fake NCCL (tests/unit/collectives/nccl): a step that is polled until it is done; and whether the
 * stream is being recorded, so that the step will be polled once per launch. */
void fake_stream_push(cudaStream_t stream, bool (*step)(void *arg), void *arg);
bool fake_stream_records(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
