/* matmul_plan.h - how cuBLASLt computes one kind of product: describe it, choose an algorithm, print what was chosen. For
 * matmul.c, which keeps the plans and runs them.
 *
 * Ownership: a plan owns cuBLASLt's objects; plan_release destroys them. A zeroed plan owns nothing.
 * Errors:    functions that return int: 0, or another number where cuBLAS refused.
 */
#ifndef TK_KERNELS_CUDA_MATMUL_PLAN_H
#define TK_KERNELS_CUDA_MATMUL_PLAN_H

#include "kernels/cuda/blas.h"
#include "kernels/cuda/matmul.h"

/* What an algorithm is chosen by. No padding: keys are compared as bytes. */
struct plan_key {
    int m, n, k, lda, ldb, ldc;
    int a_transposed, b_transposed, bias, more, extra;
    int of, to;
    unsigned align_a, align_b, align_c, align_bias, align_aux;
};

/* What an epilogue reads and writes besides has to be aligned to so many bytes. */
enum { PLAN_ALIGN_EPILOGUE = 16 };

struct plan {
    struct plan_key key;
    bool none;         /* cuBLAS has nothing for it, or refused it */
    const char *apart; /* why the extra is left to the caller; NULL: it is not */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
};

/* cuBLASLt, started. */
struct plan_maker {
    struct blas blas;
    cublasLtHandle_t handle;
    enum precision precision;
};

struct plan_key plan_key_of(const struct product *p);

/* The alignment of a pointer in bytes, 256 at most, which is also NULL's. */
unsigned plan_align_of(const void *p);

/* Whether cuBLAS can compute the key's extra: its epilogues have terms for alignment and size. */
bool plan_key_fits(const struct plan_key *k);

/* Create cuBLASLt's objects for p->key; p->apart: without the extra. */
int plan_describe(const struct plan_maker *m, struct plan *p, const struct product *product) MUST_CHECK;
/* After plan_describe: set algo and workspace_bytes. */
int plan_choose(const struct plan_maker *m, struct plan *p) MUST_CHECK;
/* Set the addresses that the epilogue reads and writes. */
int plan_point(const struct plan_maker *m, const struct plan *plan, const struct product *p) MUST_CHECK;
void plan_release(const struct plan_maker *m, struct plan *p);

/* To stderr: the product's shape, without the end of the line; the whole line. */
void plan_print_key(const struct plan_key *k);
void plan_print(const struct plan_maker *m, const struct plan *p);

#endif
