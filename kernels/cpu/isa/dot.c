/* dot.c - products of matrices that both lie along the summed dimension: no packing, lanes summed last. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

/* DOT_X rows of x times four of w: with the operands they fill the registers. (3 x 8 reads x half as often and takes a
 * sixth more time: eight streams of w, and more sums across lanes at a time.) */
#if defined(__AVX512F__)
#define DOT_X 6
#else
#define DOT_X 3
#endif

#define BLOCK(nx, nw) ISA_JOIN(ISA_JOIN(block, nx), nw)

static inline void write_sum(const struct isa_dot *d, float *out, float bias, vec sum)
{
    float v = vec_sum(sum) + bias;
    *out = d->relu && v < 0 ? 0 : v;
}

/* The same for four neighbours: sums across lanes cost less together. NaN stays, as above. */
static inline void write_sums(const struct isa_dot *d, float *out, const float *bias, vec_quad sum)
{
    vec_quad b = {0};
    if (bias)
        memcpy(&b, bias, sizeof b);
    sum += b;
    if (d->relu)
        sum = (vec_quad)((vec_quad_bits)sum & ~(sum < (vec_quad){0}));
    memcpy(out, &sum, sizeof sum);
}

#define NX 1
#define NW 4
#include "kernels/cpu/isa/dot_block.h"
#define NX 2
#define NW 4
#include "kernels/cpu/isa/dot_block.h"
#define NX 3
#define NW 4
#include "kernels/cpu/isa/dot_block.h"
#if defined(__AVX512F__)
#define NX 4
#define NW 4
#include "kernels/cpu/isa/dot_block.h"
#define NX 5
#define NW 4
#include "kernels/cpu/isa/dot_block.h"
#define NX 6
#define NW 4
#include "kernels/cpu/isa/dot_block.h"
#endif
#define NX DOT_X
#define NW 1
#include "kernels/cpu/isa/dot_block.h"
#define NX 1
#define NW 1
#include "kernels/cpu/isa/dot_block.h"

/* Four rows of w against all rows of x, in blocks of nearly equal height as in gemm.c. */
static void four(const struct isa_dot *d, int o)
{
    static void (*const blocks[])(const struct isa_dot *, int, int) = {
        block_1_4,
        block_2_4,
        block_3_4,
#if defined(__AVX512F__)
        block_4_4,
        block_5_4,
        block_6_4,
#endif
    };
    _Static_assert(sizeof blocks / sizeof blocks[0] == DOT_X, "one block per height");
    int n_blocks = (d->rows + DOT_X - 1) / DOT_X;
    for (int i = 0, r = 0; i < n_blocks; i++) {
        int n = d->rows / n_blocks + (i < d->rows % n_blocks);
        blocks[n - 1](d, r, o);
        r += n;
    }
}

/* All rows of x against a few rows of w at a time: those stay in the first-level cache. */
void ISA_FN(dot)(const struct isa_dot *d)
{
    int o = 0;
    for (; o + 4 <= d->outs; o += 4)
        four(d, o);
    for (; o < d->outs; o++) {
        int r = 0;
        for (; r + DOT_X <= d->rows; r += DOT_X)
            BLOCK(DOT_X, 1)(d, r, o);
        for (; r < d->rows; r++)
            block_1_1(d, r, o);
    }
}
