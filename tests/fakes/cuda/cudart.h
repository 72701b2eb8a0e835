/* cudart.h - what tests tell the runtime that is none (cudart.cc). */
#ifndef TK_TESTS_FAKES_CUDA_CUDART_H
#define TK_TESTS_FAKES_CUDA_CUDART_H

#ifdef __cplusplus
extern "C" {
#endif

/* The call of `function` behind the next `calls` ones fails, once. */
void fake_cudart_fail(const char *function, int calls);

/* Pieces of device memory that nobody has freed. */
int fake_cudart_pieces(void);

#ifdef __cplusplus
}
#endif

#endif
