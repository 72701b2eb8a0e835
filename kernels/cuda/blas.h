/* blas.h - cuBLASLt's functions, loaded with dlopen, so that a process without matrix products on a GPU needs no such
 * library.
 *
 * Ownership: the library stays loaded.
 * Errors:    ERR_INVALID: the library is missing or lacks a function; the message has the loader's words, and how to
 *            provide it.
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
    X(MatmulAlgoCapGetAttribute)                                                                             \
    X(MatmulAlgoConfigGetAttribute)                                                                          \
    X(GetVersion)                                                                                            \
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
