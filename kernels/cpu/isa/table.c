/* table.c - this build's table. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

#define ISA_TEXT2(a) #a
#define ISA_TEXT(a) ISA_TEXT2(a)

const struct isa_ops ISA_JOIN(isa_ops, TK_ISA_NAME) = {
    .name = ISA_TEXT(TK_ISA_NAME),
    .panel = VEC_PANEL,
    .gemm = ISA_FN(gemm),
    .dot = ISA_FN(dot),
    .relu = ISA_FN(relu),
    .relu_mask = ISA_FN(relu_mask),
    .col_sum = ISA_FN(col_sum),
    .pool_forward = ISA_FN(pool_forward),
    .pool_backward = ISA_FN(pool_backward),
    .sum = ISA_FN(sum),
    .adam = ISA_FN(adam),
    .sgd = ISA_FN(sgd),
    .peak = ISA_FN(peak),
};
