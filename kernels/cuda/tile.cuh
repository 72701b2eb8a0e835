/* tile.cuh - products of two operands that need not be matrices: C (rows, cols) = sum over k of A(row, k) B(col, k).
 *
 * Operands are those of split.cuh, read element by element.
 *
 * A block computes TILE x TILE elements, a thread 4 x 4 of them. Products that are kernels of their own: split.cuh.
 */
#ifndef TK_KERNELS_CUDA_TILE_CUH
#define TK_KERNELS_CUDA_TILE_CUH

#include "kernels/cuda/operands.cuh"

namespace
{

constexpr int TILE = 64;
constexpr int TILE_K = 16;
constexpr int TILE_THREADS = 256;
constexpr int TILE_LD = TILE + 4; /* a row's four floats stay aligned, and columns spread over the banks */
constexpr int EACH = TILE * TILE_K / TILE_THREADS; /* elements of a tile that a thread reads */
constexpr int MINE = 4;                            /* rows, and columns, of C that a thread computes */

/* How a thread's reads go over a tile: along k or along outer, whichever lies side by side. */
template <bool K_FAST> struct tile_reads {
    static __device__ int outer(int t, int i)
    {
        return K_FAST ? t / TILE_K + i * (TILE_THREADS / TILE_K) : t % TILE;
    }
    static __device__ int k(int t, int i)
    {
        return K_FAST ? t % TILE_K : t / TILE + i * (TILE_THREADS / TILE);
    }
};

/* One operand's part of a thread's work: EACH elements of every tile. */
template <class X> struct tile_reader {
    using reads = tile_reads<X::K_FAST>;
    static constexpr int OUTERS = X::K_FAST ? EACH : 1;
    const X &x;
    const int t, first, outers;
    typename X::outer mine[OUTERS];

    __device__ tile_reader(const X &operand, int thread, int first_outer, int all)
        : x(operand), t(thread), first(first_outer), outers(all)
    {
        for (int i = 0; i < OUTERS; i++)
            mine[i] = x.at_outer(at_most(first + reads::outer(t, i), outers - 1));
    }

    /* The tile that begins at k, up to `end`. */
    __device__ void load(float *tile, int k, int end) const
    {
        constexpr int STEPS = X::K_FAST ? 1 : EACH;
        typename X::step steps[STEPS];
        for (int i = 0; i < STEPS; i++)
            steps[i] = x.at_step(at_most(k + reads::k(t, i), end - 1));
        for (int i = 0; i < EACH; i++) {
            int o = reads::outer(t, i);
            int step = reads::k(t, i);
            bool inside = first + o < outers && k + step < end;
            tile[step * TILE_LD + o] =
                inside ? x.read(mine[X::K_FAST ? i : 0], steps[X::K_FAST ? 0 : i]) : 0.0F;
        }
    }
};

/* The first row, and the first column, of a tile of C that this thread computes. */
__device__ inline int tile_row()
{
    return (int)threadIdx.x / (TILE / MINE) * MINE;
}

__device__ inline int tile_col()
{
    return (int)threadIdx.x % (TILE / MINE) * MINE;
}

constexpr int TILE_MEMORY = 2 * TILE_K * TILE_LD; /* floats of shared memory: a tile of each operand */

/* sum[y][x] += the products of A's rows and B's columns, the tile that begins at row0 and col0, begin <= k < end. By all
 * threads of the block; none reads any more when it returns. */
template <class A, class B>
__device__ inline void tile_add(float (&sum)[MINE][MINE], float *memory, const A &a, int row0, int rows,
                                const B &b, int col0, int cols, int begin, int end)
{
    float *tile_a = memory;
    float *tile_b = memory + TILE_K * TILE_LD;
    const int row = tile_row();
    const int col = tile_col();
    const tile_reader<A> read_a(a, (int)threadIdx.x, row0, rows);
    const tile_reader<B> read_b(b, (int)threadIdx.x, col0, cols);

    for (int k = begin; k < end; k += TILE_K) {
        read_a.load(tile_a, k, end);
        read_b.load(tile_b, k, end);
        __syncthreads();
        UNROLL_4
        for (int i = 0; i < TILE_K; i++) {
            float of_a[MINE], of_b[MINE];
            for (int j = 0; j < MINE; j++) {
                of_a[j] = tile_a[i * TILE_LD + row + j];
                of_b[j] = tile_b[i * TILE_LD + col + j];
            }
            for (int y = 0; y < MINE; y++)
                for (int x = 0; x < MINE; x++)
                    sum[y][x] = __fmaf_rn(of_a[y], of_b[x], sum[y][x]);
        }
        __syncthreads();
    }
}

} // namespace

#endif
