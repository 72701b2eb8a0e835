/* table.c - this instruction set's table of inner loops (isa.h). */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

#define ISA_TEXT2(a) #a
#define ISA_TEXT(a) ISA_TEXT2(a)

const struct isa_ops ISA_JOIN(isa_ops, TK_ISA_NAME) = {.name = ISA_TEXT(TK_ISA_NAME),
                                                       .panel = VEC_PANEL,
#define ISA_ROW(type, name, args) .name = ISA_FN(name),
                                                       ISA_LOOPS(ISA_ROW)
#undef ISA_ROW
};
