/* blas.h - cuBLASLt's functions, loaded by name at run time, so that a process without matrix products on a GPU needs no
 * such library.
 *
 * Ownership: what is loaded stays loaded.
 * Errors:    ERR_NOT_FOUND with the loader's own words.
 */
#ifndef TK_KERNELS_CUDA_BLAS_H
#define TK_KERNELS_CUDA_BLAS_H

#include "common/cleanup.h"
#include "common/err.h"

#include <cublasLt.h>

/* X(name): cublasLt<name> */
#define BLAS_FUNCTIONS(X)                                                                                    \
    X(Create)                                                                                                \
    X(Destroy)                                                                                               \
    X(MatmulDescCreate)                                                                                      \
    X(MatmulDescDestroy)                                                                                     \
    X(MatmulDescSetAttribute)                                                                                \
    X(MatrixLayoutCreate)                                                                                    \
    X(MatrixLayoutDestroy)                                                                                   \
    X(MatmulPreferenceCreate)                                                                                \
    X(MatmulPreferenceDestroy)                                                                               \
    X(MatmulPreferenceSetAttribute)                                                                          \
    X(MatmulAlgoGetHeuristic)                                                                                \
    X(Matmul)

struct blas {
#define BLAS_MEMBER(name) __typeof__(cublasLt##name) *name;
    BLAS_FUNCTIONS(BLAS_MEMBER)
#undef BLAS_MEMBER
};

#ifdef __cplusplus
extern "C"
#endif
    int
    blas_load(struct blas *b, struct err *err) MUST_CHECK;

#endif
