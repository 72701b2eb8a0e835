/* gemm.c - matrix product in blocks of VEC_ROWS rows by 2 vectors, whose sums stay in registers along the inner
 * dimension. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

#define ROWS 1
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 2
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 3
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 4
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 5
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 6
#include "kernels/cpu/isa/gemm_block.h"
#if defined(__AVX512F__)
#define ROWS 7
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 8
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 9
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 10
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 11
#include "kernels/cpu/isa/gemm_block.h"
#define ROWS 12
#include "kernels/cpu/isa/gemm_block.h"
#endif

void ISA_FN(gemm)(const struct isa_gemm *g)
{
    static void (*const blocks[])(const struct isa_gemm *, int) = {
        block_1,
        block_2,
        block_3,
        block_4,
        block_5,
        block_6,
#if defined(__AVX512F__)
        block_7,
        block_8,
        block_9,
        block_10,
        block_11,
        block_12,
#endif
    };
    _Static_assert(sizeof blocks / sizeof blocks[0] == VEC_ROWS, "one block per height");
    /* Blocks of nearly equal height: 32 rows are 11 + 11 + 10, for a short block wastes cycles. */
    int n_blocks = (g->rows + VEC_ROWS - 1) / VEC_ROWS;
    for (int i = 0, r = 0; i < n_blocks; i++) {
        int n = g->rows / n_blocks + (i < g->rows % n_blocks);
        blocks[n - 1](g, r);
        r += n;
    }
}
