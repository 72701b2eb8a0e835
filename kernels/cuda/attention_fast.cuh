/* attention_fast.cuh - what the kernels of attention's fast path share: tiles of rows in shared memory, and a warp's products of
 * them by the tensor cores (bf16, heads of 64 numbers, rows in packs of 16 bytes: attention.h).
 *
 * A block has FAST_WARPS warps; each computes 16 rows and FAST_TILE columns of a product, whose elements lie in its lanes'
 * registers as the instructions leave them (m16n8, PTX ISA "mma"): lane l holds of every 8 columns rows l / 4 and l / 4 + 8,
 * columns 2 (l % 4) and the next. So a row's four lanes agree by two shuffles.
 */
#ifndef TK_KERNELS_CUDA_ATTENTION_FAST_CUH
#define TK_KERNELS_CUDA_ATTENTION_FAST_CUH

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/vector.cuh"

namespace
{

constexpr int FAST_WARPS = 4;
constexpr int FAST_THREADS = FAST_WARPS * WARP;
constexpr int FAST_TILE = 64; /* positions */
constexpr int HEAD = ATTENTION_FAST_SIZE;
constexpr int WARP_ROWS = 16;
constexpr int EIGHTS = FAST_TILE / 8;
static_assert(HEAD == FAST_TILE, "a product has as many columns with positions as with numbers of a head");

/* Rows begin 16 bytes further from bank to bank: lanes that read eight rows at once meet no other's bank. */
constexpr int PACK = pack<bf16>::N;
constexpr int TILE_STRIDE = HEAD + PACK;
constexpr int TILE_ELEMENTS = FAST_TILE * TILE_STRIDE;
constexpr size_t TILE_BYTES = TILE_ELEMENTS * sizeof(bf16);

/* A block for each `rows` positions of a head. */
inline dim3 fast_grid(const attention_job &j, int rows)
{
    return dim3((unsigned)j.n, (unsigned)ceil_div(j.s.time, rows));
}

/* Ask for positions first .. of a head, 0 behind the last (copy.cuh: they are not there yet). */
__device__ inline void load_tile(bf16 *tile, head_rows<const bf16> from, int time, int first)
{
    constexpr int PER_ROW = HEAD / PACK;
    constexpr int ROWS = FAST_THREADS / PER_ROW; /* at a time */
    static_assert(FAST_TILE % ROWS == 0, "each thread copies as many packs as any other");
    const int c = (int)threadIdx.x % PER_ROW * PACK;

    UNROLL
    for (int i = 0; i < FAST_TILE / ROWS; i++) {
        const int r = (int)threadIdx.x / PER_ROW + i * ROWS;
        const bool inside = first + r < time;
        const bf16 *at = inside ? from.p + (int64_t)(first + r) * from.row + c : from.p;
        copy16(tile + r * TILE_STRIDE + c, at, inside);
    }
}

/* What a block meets, two tiles at a time, in two sets: one is computed with while the other comes. */
struct met_tiles {
    bf16 *sets;
    head_rows<const bf16> of[2];
    int time;

    __device__ void load(int set, int first) const
    {
        UNROLL
        for (int i = 0; i < 2; i++)
            load_tile(sets + (2 * set + i) * TILE_ELEMENTS, of[i], time, first);
    }
    /* The first set, together with what else the block has asked for. */
    __device__ void begin(int first) const
    {
        load(0, first);
        copy_commit();
    }
    /* The set of positions first .., the turn'th. Asks for the next unless it is the last. */
    __device__ const bf16 *next(int turn, int first, bool last) const
    {
        const int set = turn % 2;
        __syncthreads(); /* the other set's last readers are done */
        if (!last)
            load(1 - set, first + FAST_TILE);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        return sets + 2 * set * TILE_ELEMENTS;
    }
};

/* A warp's part of a product: 16 rows, FAST_TILE columns. */
struct products {
    float v[EIGHTS][4];
};

/* The warp's first row of a tile. */
__device__ inline int warp_row()
{
    return (int)threadIdx.x / WARP * WARP_ROWS;
}

/* Of element i of v[j]: its row among the warp's 16, and its column. */
__device__ inline int product_row(int i)
{
    return (int)threadIdx.x % WARP / 4 + (i < 2 ? 0 : 8);
}

__device__ inline int product_col(int j, int i)
{
    return j * 8 + (int)threadIdx.x % 4 * 2 + i % 2;
}

/* c[u] += a b^T: rows of `a` (U times 16 of the warp's) with rows of `b`, number by number. What is read of b serves all of them. */
template <int U> __device__ inline void multiply_rows(products *c, const bf16 *a, const bf16 *b)
{
    const int lane = (int)threadIdx.x % WARP;
    const bf16 *rows =
        a + lane % 16 * TILE_STRIDE + lane / 16 * 8; /* 16 rows of 8 numbers, and of the next 8 */
    const bf16 *others =
        b + (lane % 8 + lane / 16 * 8) * TILE_STRIDE + lane / 8 % 2 * 8; /* 8 rows twice, and 8 more */

    __syncwarp(); /* mma.sync wants all lanes at once; loads on conditions stand before it */
    UNROLL
    for (int k = 0; k < HEAD; k += 16) {
        uint32_t x[U][4];
        UNROLL
        for (int u = 0; u < U; u++)
            load_matrices(x[u], rows + u * WARP_ROWS * TILE_STRIDE + k);
        UNROLL
        for (int j = 0; j < EIGHTS; j += 2) {
            uint32_t y[4];
            load_matrices(y, others + j * 8 * TILE_STRIDE + k);
            UNROLL
            for (int u = 0; u < U; u++) {
                multiply_m16n8k16(c[u].v[j], x[u], y);
                multiply_m16n8k16(c[u].v[j + 1], x[u], y + 2);
            }
        }
    }
}

/* sum[u] += p[u] b: the warp's products, rounded to bf16, with the columns of `b`. Where the tensor cores leave a product is where
 * they want their first operand: it stays in registers. */
template <int U> __device__ inline void multiply_products(products *sum, const products *p, const bf16 *b)
{
    const int lane = (int)threadIdx.x % WARP;
    const bf16 *row =
        b + lane % 16 * TILE_STRIDE + lane / 16 * 8; /* 16 rows of 8 columns, and of the next 8 */

    __syncwarp(); /* as in multiply_rows */
    UNROLL
    for (int n = 0; n < EIGHTS; n += 2) {
        uint32_t x[U][4];
        UNROLL
        for (int u = 0; u < U; u++) {
            const float(*v)[4] = p[u].v + n;
            x[u][0] = pair_of(v[0][0], v[0][1]), x[u][1] = pair_of(v[0][2], v[0][3]);
            x[u][2] = pair_of(v[1][0], v[1][1]), x[u][3] = pair_of(v[1][2], v[1][3]);
        }
        UNROLL
        for (int j = 0; j < EIGHTS; j += 2) {
            uint32_t y[4];
            load_turned(y, row + n * 8 * TILE_STRIDE + j * 8);
            UNROLL
            for (int u = 0; u < U; u++) {
                multiply_m16n8k16(sum[u].v[j], x[u], y);
                multiply_m16n8k16(sum[u].v[j + 1], x[u], y + 2);
            }
        }
    }
}

/* Weights are powers of 2, by one instruction: as exact as what is rounded to bf16. Exponents of e times this. */
constexpr float LOG2_E = 1.44269504F;

/* The warp's rows of a result, `scale` times c, first of them position `first`. */
__device__ inline void write_products(head_rows<bf16> to, int time, int first, const products &c, float scale)
{
    UNROLL
    for (int j = 0; j < EIGHTS; j++)
        for (int i = 0; i < 4; i++) {
            const int t = first + product_row(i);
            if (t < time)
                to.p[(int64_t)t * to.row + product_col(j, i)] = (bf16)(c.v[j][i] * scale);
        }
}

} // namespace

#endif
