/* runtime.h - what cudart.cc and streams.cc have in common. */
#ifndef TK_TESTS_FAKES_CUDA_RUNTIME_H
#define TK_TESTS_FAKES_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

/* This call of `function` is the one that a test wants to fail. */
bool fake_fails(const char *function);

/* What the runtime keeps until cudaGetLastError is called: every answer but success, even "not ready". */
cudaError_t fake_told(cudaError_t e);

/* Queued work may touch device memory from open to close; they nest. */
void fake_memory_open(void);
void fake_memory_close(void);

#endif
