/* local.h - names inside one build of this folder: ISA_FN(gemm) is isa_gemm_avx512 in the AVX-512 build. */
#ifndef TK_KERNELS_ISA_LOCAL_H
#define TK_KERNELS_ISA_LOCAL_H

#include "kernels/cpu/isa/isa.h"

#define ISA_JOIN2(a, b) a##_##b
#define ISA_JOIN(a, b) ISA_JOIN2(a, b)
#define ISA_FN(name) ISA_JOIN(isa_##name, TK_ISA_NAME)

void ISA_FN(gemm)(const struct isa_gemm *g);
void ISA_FN(dot)(const struct isa_dot *d);
void ISA_FN(pack_across)(float *to, const float *from, ptrdiff_t row, int n, int steps);
void ISA_FN(relu)(float *out, const float *in, size_t n);
void ISA_FN(relu_mask)(float *din, const float *dout, const float *out, size_t n);
void ISA_FN(col_sum)(float *sum, const float *x, ptrdiff_t ld, int rows, int cols);
void ISA_FN(pool_forward)(const struct isa_pool *p, float *out, uint8_t *argmax, const float *in);
void ISA_FN(pool_backward)(const struct isa_pool *p, float *din, const float *dout, const uint8_t *argmax,
                           const float *out);
void ISA_FN(sum)(float *out, const float *const *slices, int n_slices, size_t begin, size_t end, float scale);
void ISA_FN(adam)(const struct adam_scalars *a, float *p, float *m, float *v, const float *g, size_t n);
void ISA_FN(sgd)(const struct sgd_scalars *s, float *p, float *u, const float *g, size_t n);
void ISA_FN(gelu)(float *out, const float *in, size_t n);
void ISA_FN(gelu_grad)(float *din, const float *dout, const float *in, size_t n);
void ISA_FN(gelu_tanh)(float *out, const float *in, size_t n);
void ISA_FN(gelu_tanh_grad)(float *din, const float *dout, const float *in, size_t n);
void ISA_FN(dropout)(const struct isa_dropout *d, float *out, uint8_t *keep, const float *in, size_t n);
void ISA_FN(dropout_grad)(float *din, const float *dout, const uint8_t *keep, float scale, size_t n);
void ISA_FN(cols_sum)(double *sum, const float *x, ptrdiff_t ld, int rows, int cols);
void ISA_FN(cols_square)(double *sum, const float *x, const float *mean, ptrdiff_t ld, int rows, int cols);
void ISA_FN(cols_dot)(double *sum, const float *a, const float *x, const float *mean, ptrdiff_t ld, int rows,
                      int cols);
void ISA_FN(cols_dot_rows)(double *sum, const float *a, const float *x, const float *mean, const float *rstd,
                           ptrdiff_t ld, int rows, int cols);
void ISA_FN(scale_shift)(float *out, const float *x, const float *scale, const float *shift, int rows,
                         int cols);
void ISA_FN(batchnorm_grad)(float *din, const float *dout, const float *x, const struct isa_batchnorm *b,
                            int rows, int cols);
void ISA_FN(layernorm)(float *out, float *mean, float *rstd, const float *x, const float *weight,
                       const float *bias, double eps, int n);
void ISA_FN(layernorm_grad)(float *din, const float *dout, const float *x, const float *weight, float mean,
                            float rstd, int n);
void ISA_FN(avgpool_forward)(const struct isa_pool *p, float *out, const float *in);
void ISA_FN(avgpool_backward)(const struct isa_pool *p, float *din, const float *dout);
float ISA_FN(softmax_more)(float *x, int n, int width, float scale, float *most, float *sum);
void ISA_FN(softmax_again)(float *x, float *d, int n, int width, float scale, float lse, float dot);
float ISA_FN(inner)(const float *a, const float *b, int n);
float ISA_FN(exp_row)(float *x, int n, double *ret_sum);
void ISA_FN(scale_row)(float *x, float scale, size_t n);
double ISA_FN(square_sum)(const float *x, size_t n);
double ISA_FN(peak)(int64_t rounds, float *sink);

#endif
