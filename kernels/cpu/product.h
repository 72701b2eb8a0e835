/* product.h - one matrix product of any size in cache-sized blocks, for operations over many rows.
 *
 * Shapes:    C (M,N) = A (M,K) B (K,N) + bias (N). Strides are in floats.
 * Ownership: everything is borrowed for the call; C overlaps nothing.
 * Numerics:  an element's products are summed along K in blocks of one fixed length and the blocks then added, first to
 *            last, whoever computes it.
 */
#ifndef TK_KERNELS_CPU_PRODUCT_H
#define TK_KERNELS_CPU_PRODUCT_H

#include "kernels/cpu/run.h"
#include "kernels/linear.h"

struct product {
    const float *a;
    ptrdiff_t a_row, a_step; /* A[m][k] is a[m a_row + k a_step] */
    const float *b;
    ptrdiff_t b_row;
    float *c;
    ptrdiff_t c_row;
    const float *bias; /* (N) or NULL */
    int m, n, k;
    bool accumulate; /* C += ...; bias is then not read */
    bool relu;
};

/* Floats of scratch for a product whose B lies across. */
size_t product_scratch(int n, int k, int panel);

/* `packed`: so much, and B lies across: B[k][n] is b[n b_row + k]. NULL: B[k][n] is b[k b_row + n]. */
void product_run(struct kctx *ctx, const struct product *p, float *packed);

/* The gradients of y = x W^T, W (out,in), from dy: din = dy W (NULL: not wanted), dweight = dy^T x, added to it when
 * `more`. */
void product_gradients(struct kctx *ctx, const struct linear_shape *s, float *din, float *dweight, bool more,
                       const float *dy, const float *in, const float *weight);

/* A panel of a matrix that lies along: to (steps, w), of which n columns are from's and the rest 0. */
void product_pack(float *to, const float *from, ptrdiff_t row, int n, int steps, int w);

/* sum (cols) is written: over the rows of x (rows,cols). */
void product_col_sum(struct kctx *ctx, float *sum, const float *x, int rows, int cols);

#endif
