/* table.c - this instruction set's table of inner loops (isa.h). */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

#define ISA_TEXT2(a) #a
#define ISA_TEXT(a) ISA_TEXT2(a)

const struct isa_ops ISA_JOIN(isa_ops, TK_ISA_NAME) = {
    .name = ISA_TEXT(TK_ISA_NAME),
    .panel = VEC_PANEL,
    .gemm = ISA_FN(gemm),
    .dot = ISA_FN(dot),
    .pack_across = ISA_FN(pack_across),
    .relu = ISA_FN(relu),
    .relu_mask = ISA_FN(relu_mask),
    .col_sum = ISA_FN(col_sum),
    .pool_forward = ISA_FN(pool_forward),
    .pool_backward = ISA_FN(pool_backward),
    .sum = ISA_FN(sum),
    .adam = ISA_FN(adam),
    .sgd = ISA_FN(sgd),
    .gelu = ISA_FN(gelu),
    .gelu_grad = ISA_FN(gelu_grad),
    .gelu_tanh = ISA_FN(gelu_tanh),
    .gelu_tanh_grad = ISA_FN(gelu_tanh_grad),
    .dropout = ISA_FN(dropout),
    .dropout_grad = ISA_FN(dropout_grad),
    .cols_sum = ISA_FN(cols_sum),
    .cols_square = ISA_FN(cols_square),
    .cols_dot = ISA_FN(cols_dot),
    .cols_dot_rows = ISA_FN(cols_dot_rows),
    .scale_shift = ISA_FN(scale_shift),
    .batchnorm_grad = ISA_FN(batchnorm_grad),
    .layernorm = ISA_FN(layernorm),
    .layernorm_grad = ISA_FN(layernorm_grad),
    .avgpool_forward = ISA_FN(avgpool_forward),
    .avgpool_backward = ISA_FN(avgpool_backward),
    .softmax_more = ISA_FN(softmax_more),
    .softmax_again = ISA_FN(softmax_again),
    .inner = ISA_FN(inner),
    .exp_row = ISA_FN(exp_row),
    .scale_row = ISA_FN(scale_row),
    .square_sum = ISA_FN(square_sum),
    .peak = ISA_FN(peak),
};
