/* dot.c - products of matrices that both lie along the summed dimension: no packing, sums across lanes last. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

/* DOT_X rows of x times four of w: with the operands they fill the registers. */
#if defined(__AVX512F__)
enum { DOT_X = 6 };
#else
enum { DOT_X = 3 };
#endif

static inline void write_sum(const struct isa_dot *d, float *out, float bias, vec sum)
{
    float v = vec_sum(sum) + bias;
    *out = d->relu && v < 0 ? 0 : v;
}

#define NX DOT_X
#define NW 4
#define NAME block_x4
#include "kernels/cpu/isa/dot_block.h"
#define NX 2
#define NW 4
#define NAME block_24
#include "kernels/cpu/isa/dot_block.h"
#define NX 1
#define NW 4
#define NAME block_14
#include "kernels/cpu/isa/dot_block.h"
#define NX DOT_X
#define NW 1
#define NAME block_x1
#include "kernels/cpu/isa/dot_block.h"
#define NX 1
#define NW 1
#define NAME block_11
#include "kernels/cpu/isa/dot_block.h"

/* All rows of x against a few rows of w at a time: those stay in the first-level cache. */
void ISA_FN(dot)(const struct isa_dot *d)
{
    int o = 0;
    for (; o + 4 <= d->outs; o += 4) {
        int r = 0;
        for (; r + DOT_X <= d->rows; r += DOT_X)
            block_x4(d, r, o);
        for (; r + 2 <= d->rows; r += 2)
            block_24(d, r, o);
        for (; r < d->rows; r++)
            block_14(d, r, o);
    }
    for (; o < d->outs; o++) {
        int r = 0;
        for (; r + DOT_X <= d->rows; r += DOT_X)
            block_x1(d, r, o);
        for (; r < d->rows; r++)
            block_11(d, r, o);
    }
}
