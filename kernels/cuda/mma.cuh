/* mma.cuh - the tensor cores' products of bf16, a warp at a time, with sums in f32.
 *
 * Which lane holds what is PTX ISA's, "Matrix Fragments for mma.m16n8k16" and "ldmatrix": with g = lane / 4, t = lane % 4,
 *
 *     a   rows g, g + 8, g, g + 8 of 16, pairs of k from 2 t, 2 t, 2 t + 8, 2 t + 8
 *     b   column g of 8, pairs of k from 2 t, 2 t + 8
 *     c   rows g, g, g + 8, g + 8, columns 2 t, 2 t + 1, 2 t, 2 t + 1
 *
 * The emulation computes the same from the same registers, and refuses addresses that a GPU would.
 */
#ifndef TK_KERNELS_CUDA_MMA_CUH
#define TK_KERNELS_CUDA_MMA_CUH

#include "kernels/cuda/element.cuh"

namespace
{

#ifdef __CUDACC__

__device__ inline void multiply_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Two numbers into a pair, the first into the lower half. */
__device__ inline uint32_t pair_of(float first, float second)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

/* Four matrices of 8 x 8 out of shared memory: lane l gives the address of row l % 8 of matrix l / 8, 16 bytes at a multiple of
 * 16, and gets of each matrix row l / 4, columns 2 (l % 4) and the next. */
__device__ inline void load_matrices(uint32_t (&to)[4], const bf16 *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

/* Four matrices of 8 x 8 out of shared memory, turned round: lane l gives the address of row l % 8 of matrix l / 8, 16 bytes
 * at a multiple of 16. */
__device__ inline void load_turned(uint32_t (&to)[4], const bf16 *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

#else

inline uint32_t pair_of(float first, float second)
{
    return bf16(first).bits | (uint32_t)bf16(second).bits << 16;
}

inline float half_of(uint32_t pair, int which)
{
    return float_of(which ? pair & 0xffff0000U : pair << 16);
}

inline void multiply_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t *b)
{
    struct operands {
        uint32_t a[4], b[2];
    } all[WARP], mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    const int g = (int)threadIdx.x % WARP / 4;
    const int t = (int)threadIdx.x % 4;

    emulate_share(&mine, sizeof(mine), all);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) {
            const int of = k % 8 / 2;
            const uint32_t x = all[g * 4 + of].a[(i < 2 ? 0 : 1) + (k < 8 ? 0 : 2)];
            const uint32_t y = all[(2 * t + i % 2) * 4 + of].b[k < 8 ? 0 : 1];
            c[i] = fmaf(half_of(x, k % 2), half_of(y, k % 2), c[i]);
        }
}

/* Where each lane's row is. */
inline void rows_of_matrices(const bf16 *(&all)[WARP], const bf16 *row)
{
    if ((uintptr_t)row % 16 != 0)
        emulate_broken("a row of a matrix at an address that is no multiple of 16");
    emulate_share(&row, sizeof(row), all);
}

inline void load_matrices(uint32_t (&to)[4], const bf16 *row)
{
    const bf16 *all[WARP];
    const int g = (int)threadIdx.x % WARP / 4;
    const int t = (int)threadIdx.x % 4;

    rows_of_matrices(all, row);
    for (int m = 0; m < 4; m++)
        to[m] = all[m * 8 + g][2 * t].bits | (uint32_t)all[m * 8 + g][2 * t + 1].bits << 16;
}

inline void load_turned(uint32_t (&to)[4], const bf16 *row)
{
    const bf16 *all[WARP];
    const int g = (int)threadIdx.x % WARP / 4;
    const int t = (int)threadIdx.x % 4;

    rows_of_matrices(all, row);
    for (int m = 0; m < 4; m++)
        to[m] = all[m * 8 + 2 * t][g].bits | (uint32_t)all[m * 8 + 2 * t + 1][g].bits << 16;
}

#endif

} // namespace

#endif
