/* matmul.h - matrix products by cuBLASLt.
 *
 * Shapes:   column-major, as cuBLAS counts: C (m,n) = op(A) (m,k) op(B) (k,n), each with its leading dimension. A
 *           row-major matrix (R,C) is a column-major one (C,R).
 * Elements: A and B are of one kind, C and the bias of one kind: both f32, both bf16, or C f32 of bf16.
 * Numerics: products of f32 as the context says (f32, TF32, bf16), sums in f32 always. Algorithms that add by atomics are
 *           left out: the same bits in every run on the same kind of GPU.
 */
#ifndef TK_KERNELS_CUDA_MATMUL_H
#define TK_KERNELS_CUDA_MATMUL_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is made of a product, or beside it. x: an element of it, its bias added. */
enum extra {
    EXTRA_NONE,
    EXTRA_RELU,          /* C = x where x is not below 0 */
    EXTRA_GELU,          /* aux (m,n) = x, C = its GELU by tanh; with a bias */
    EXTRA_GELU_GRADIENT, /* C = x times the slope of that GELU at aux (m,n); without bias */
    EXTRA_COLUMN_SUMS,   /* aux (n), f32 where C is = the sums of op(B)'s columns; without bias */
};

struct product {
    int m, n, k;
    bool a_transposed, b_transposed;
    enum element of, to; /* of A and B; of C and the bias */
    const void *a, *b;
    int lda, ldb;
    void *c;
    int ldc;          /* 0: m */
    const void *bias; /* (m): added to every column; one that matmul_takes_bias; or NULL */
    bool more; /* added to what C holds (of EXTRA_GELU aux), without bias; an extra is left to the caller */
    enum extra
        extra; /* EXTRA_NONE behind matmul_run; else still to be done: x is in C, of EXTRA_GELU in aux */
    void *aux; /* lies as C without gaps */
};

struct plan; /* how cuBLAS computes products of a kind */

/* The environment variable TK_CUBLAS: off: cuBLAS is not loaded, and matmul_run does nothing, so that the kernels of this
 * folder compute instead, without tensor cores. print: each new product is a line on stderr: its shape, and whether its
 * algorithm uses tensor cores; or why it is not used.
 * ERR_INVALID: no cuBLAS that can be used; a precision that only cuBLAS has. */
struct matmul *matmul_make(enum precision precision, struct err *err) MUST_CHECK;
void matmul_free(struct matmul *m);

/* Whether cuBLAS may add p->bias: an epilogue may fault on a bias that is not aligned to 16 bytes, and where rows of bf16 operands
 * are not aligned so, it rounds the product before it adds the bias (seen on an H200 with cuBLAS 13.0). */
bool matmul_takes_bias(const struct cuda *c, const struct product *p) MUST_CHECK;

/* Queue it. false: TK_CUBLAS is off, or cuBLAS has nothing for this product; the caller does all of it. An extra that cuBLAS
 * lacks is left to the caller. That each keeps NaN its manual does not say: test_elements, run on a GPU, does. */
bool matmul_run(struct cuda *c, struct product *p) MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
