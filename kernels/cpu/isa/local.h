/* local.h - names inside one build of this folder: ISA_FN(gemm) is isa_gemm_avx512 in the AVX-512 build. */
#ifndef TK_KERNELS_ISA_LOCAL_H
#define TK_KERNELS_ISA_LOCAL_H

#include "kernels/cpu/isa/isa.h"

#define ISA_JOIN2(a, b) a##_##b
#define ISA_JOIN(a, b) ISA_JOIN2(a, b)
#define ISA_FN(name) ISA_JOIN(isa_##name, TK_ISA_NAME)

void ISA_FN(gemm)(const struct isa_gemm *g);
void ISA_FN(dot)(const struct isa_dot *d);
void ISA_FN(relu)(float *out, const float *in, size_t n);
void ISA_FN(relu_mask)(float *din, const float *dout, const float *out, size_t n);
void ISA_FN(col_sum)(float *sum, const float *x, ptrdiff_t ld, int rows, int cols);
void ISA_FN(pool_forward)(const struct isa_pool *p, float *out, uint8_t *argmax, const float *in);
void ISA_FN(pool_backward)(const struct isa_pool *p, float *din, const float *dout, const uint8_t *argmax,
                           const float *out);
void ISA_FN(sum)(float *out, const float *const *slices, int n_slices, size_t begin, size_t end, float scale);
void ISA_FN(adam)(const struct isa_adam *a, float *p, float *m, float *v, const float *g, size_t n);
void ISA_FN(sgd)(const struct isa_sgd *s, float *p, float *u, const float *g, size_t n);
double ISA_FN(peak)(int64_t rounds, float *sink);

#endif
