/* matmul.h - matrix products by cuBLAS, where it is there.
 *
 * Shapes:   column-major, as cuBLAS counts: C (m,n) = op(A) (m,k) op(B) (k,n), each with its leading dimension. A
 *           row-major matrix (R,C) is a column-major one (C,R).
 * Numerics: f32 in memory; products in f32, TF32 or bf16 as the context says, sums in f32. Algorithms that add by atomics
 *           are left out: the same bits in every run on the same kind of GPU.
 */
#ifndef TK_KERNELS_CUDA_MATMUL_H
#define TK_KERNELS_CUDA_MATMUL_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct product {
    int m, n, k;
    bool a_transposed, b_transposed;
    const float *a, *b;
    int lda, ldb;
    float *c;          /* ldc = m */
    const float *bias; /* (m): added to every column; or NULL */
    bool relu;
};

/* Without cuBLAS, or with TK_CUBLAS=off in the environment, it is made all the same, and matmul_run does nothing. ERR_INVALID: a precision that only cuBLAS has. */
struct matmul *matmul_make(enum precision precision, struct err *err) MUST_CHECK;
void matmul_free(struct matmul *m);
bool matmul_has_cublas(const struct matmul *m);

/* Queue it. false: cuBLAS is not there, or has nothing for this product. */
bool matmul_run(struct cuda *c, const struct product *p);

#ifdef __cplusplus
}
#endif

#endif
