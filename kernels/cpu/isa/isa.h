/* isa.h - the table of inner loops, one per instruction set.
 *
 * The sources of this folder are built once per set (TK_ISA_NAME tells them which); everything that decides
 * what to compute is built once, outside. Nothing here checks its arguments.
 */
#ifndef TK_KERNELS_ISA_H
#define TK_KERNELS_ISA_H

#include "kernels/scalars.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ISA_PANEL_MAX = 32 }; /* widest panel of any set, in columns */

/* C (rows x cols) = A B, one panel of at most `panel` columns wide.
 *
 * A is read element by element: row r, step j of segment s is a[a_row[r] + a_seg[s] + j * a_step]. That is a
 * matrix in either order, or a convolution's windows read in place.
 * B is read as vectors: step (s, j) is the row of `panel` floats at b + (s * seg_len + j) * ldb; all of it
 * must be readable, also behind `cols`.
 * C row r is at c + c_row[r]; of it, `cols` floats are written.
 */
struct isa_gemm {
    const float *a;
    const int32_t *a_row;
    const int32_t *a_seg;
    ptrdiff_t a_step;
    int n_seg, seg_len;
    const float *b;
    ptrdiff_t ldb;
    float *c;
    const int32_t *c_row;
    int rows, cols;
    const float *bias; /* a panel to start from, or NULL */
    bool accumulate;   /* start from what C holds (then bias is not read) */
    bool add;          /* start from 0 (or the bias) and add to what C holds last: long sums lose less so */
    bool relu;
};

/* out[r*ld_out + o] = bias[o] + sum over i of x[r*n + i] * w[o*n + i]: both operands are read along their
 * rows. */
struct isa_dot {
    float *out;
    const float *x, *w, *bias; /* bias NULL: none */
    int rows, outs, n;
    ptrdiff_t ld_out;
    bool relu;
};

/* One output pixel of a pool: those of its window that are in the image are at in + y * row + x * c, y below rows
 * and x below cols; the first of them is place `first` of the whole window, which is `window` wide. */
struct isa_pool {
    int window, c;
    int rows, cols, first;
    int area; /* what a mean divides by */
    ptrdiff_t row;
    bool add; /* the gradient: add to what is there, for windows overlap */
};

struct isa_dropout {
    uint32_t key[2];
    uint32_t threshold; /* of 2^24: what is drawn below it goes */
    float scale;        /* of what stays */
};

/* Of each column: din = scale (dout - dmean - (x - mean) dvar). */
struct isa_batchnorm {
    const float *mean, *scale, *dmean, *dvar;
};

enum { ISA_COLS = 16 };

/* The inner loops: X(result, name, arguments). A new one is a row here and a function ISA_FN(name) in a file of this
 * folder.
 *
 * cols_*: at most ISA_COLS columns: sum += over rows of x; of (x - mean)^2; of a (x - mean), the mean a column's or a
 * row's.
 * softmax_more: a row of n products, room for `width` rounded up to 16 behind it: x = e^(scale x - most), 0 from n on,
 * where most becomes the largest so far. sum is scaled to the new most, and x added to it; returns by what it was scaled.
 */
#define ISA_LOOPS(X)                                                                                         \
    X(void, gemm, (const struct isa_gemm *g))                                                                \
    X(void, dot, (const struct isa_dot *d))                                                                  \
    /* to (steps, panel): to[k][c] = from[c * row + k] for c < n <= panel, else 0. */                        \
    X(void, pack_across, (float *to, const float *from, ptrdiff_t row, int n, int steps))                    \
    X(void, relu, (float *out, const float *in, size_t n))                                                   \
    X(void, relu_mask, (float *din, const float *dout, const float *out, size_t n))                          \
    X(void, col_sum, (float *sum, const float *x, ptrdiff_t ld, int rows, int cols)) /* sum += */            \
    X(void, pool_forward, (const struct isa_pool *p, float *out, uint8_t *argmax, const float *in))          \
    X(void, pool_backward,                                                                                   \
      (const struct isa_pool *p, float *din, const float *dout, const uint8_t *argmax, const float *out))    \
    X(void, add, (float *out, const float *a, const float *b, size_t len))                                   \
    X(void, update,                                                                                          \
      (const struct update_scalars *s, float *p, float *m, float *v, const float *g, size_t n))              \
    X(void, gelu, (float *out, const float *in, size_t n))                                                   \
    X(void, gelu_grad, (float *din, const float *dout, const float *in, size_t n))                           \
    X(void, gelu_tanh, (float *out, const float *in, size_t n))                                              \
    X(void, gelu_tanh_grad, (float *din, const float *dout, const float *in, size_t n))                      \
    X(void, dropout, (const struct isa_dropout *d, float *out, uint8_t *keep, const float *in, size_t n))    \
    X(void, dropout_grad, (float *din, const float *dout, const uint8_t *keep, float scale, size_t n))       \
    X(void, cols_sum, (double *sum, const float *x, ptrdiff_t ld, int rows, int cols))                       \
    X(void, cols_square, (double *sum, const float *x, const float *mean, ptrdiff_t ld, int rows, int cols)) \
    X(void, cols_dot,                                                                                        \
      (double *sum, const float *a, const float *x, const float *mean, ptrdiff_t ld, int rows, int cols))    \
    X(void, cols_dot_rows,                                                                                   \
      (double *sum, const float *a, const float *x, const float *mean, const float *rstd, ptrdiff_t ld,      \
       int rows, int cols))                                                                                  \
    X(void, scale_shift,                                                                                     \
      (float *out, const float *x, const float *scale, const float *shift, int rows, int cols))              \
    X(void, batchnorm_grad,                                                                                  \
      (float *din, const float *dout, const float *x, const struct isa_batchnorm *b, int rows, int cols))    \
    X(void, layernorm,                                                                                       \
      (float *out, float *mean, float *rstd, const float *x, const float *weight, const float *bias,         \
       double eps, int n))                                                                                   \
    X(void, layernorm_grad,                                                                                  \
      (float *din, const float *dout, const float *x, const float *weight, float mean, float rstd, int n))   \
    X(void, avgpool_forward, (const struct isa_pool *p, float *out, const float *in))                        \
    X(void, avgpool_backward, (const struct isa_pool *p, float *din, const float *dout))                     \
    X(float, softmax_more, (float *x, int n, int width, float scale, float *most, float *sum))               \
    /* x = e^(scale x - lse), 0 from n on; d = scale x (d - dot). */                                         \
    X(void, softmax_again, (float *x, float *d, int n, int width, float scale, float lse, float dot))        \
    X(float, inner, (const float *a, const float *b, int n))                                                 \
    /* x = e^(x - most); returns most, the largest of the row. */                                            \
    X(float, exp_row, (float *x, int n, double *ret_sum))                                                    \
    X(void, scale_row, (float *x, float scale, size_t n))                                                    \
    X(double, square_sum, (const float *x, size_t n))

struct isa_ops {
    const char *name;
    int panel; /* columns of a panel of B */
#define ISA_MEMBER(type, name, args) type(*name) args;
    ISA_LOOPS(ISA_MEMBER)
#undef ISA_MEMBER
};

extern const struct isa_ops isa_ops_plain;
#if defined(__x86_64__)
extern const struct isa_ops isa_ops_avx2;
extern const struct isa_ops isa_ops_avx512;
#endif

#endif
