/* local.h - names inside one build of this folder: ISA_FN(gemm) is isa_gemm_avx512 in the AVX-512 build. */
#ifndef TK_KERNELS_ISA_LOCAL_H
#define TK_KERNELS_ISA_LOCAL_H

#include "kernels/cpu/isa/isa.h"

#define ISA_JOIN2(a, b) a##_##b
#define ISA_JOIN(a, b) ISA_JOIN2(a, b)
#define ISA_FN(name) ISA_JOIN(isa_##name, TK_ISA_NAME)

#define ISA_DECLARE(type, name, args) type ISA_FN(name) args;
ISA_LOOPS(ISA_DECLARE)
#undef ISA_DECLARE

#endif
