/* attention.cuh - what the passes of attention share: tiles of rows in shared memory, and a warp's products of them.
 *
 * A block has ATTENTION_WARPS warps; each computes 16 rows and ATTENTION_TILE columns of a product, whose elements lie in
 * its lanes' registers as the tensor cores' own instructions leave them (m16n8, PTX ISA "mma"): lane l holds of every 8
 * columns rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next. So a row's four lanes agree by two shuffles, and what
 * stands around a product does not depend on what computes it: tensor cores for bf16, fused products for f32.
 *
 * A head is taken HEAD numbers at a time: one piece of it is all there is up to 64, GPT-2's size.
 */
#ifndef TK_KERNELS_CUDA_ATTENTION_CUH
#define TK_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/vector.cuh"

namespace
{

constexpr int ATTENTION_WARPS = 4;
constexpr int ATTENTION_THREADS = ATTENTION_WARPS * WARP;
constexpr int ATTENTION_TILE = 64; /* positions, and ... */
constexpr int HEAD = 64;           /* ... numbers of a head */
constexpr int WARP_ROWS = 16;
constexpr int EIGHTS = ATTENTION_TILE / 8;

/* Rows begin 16 bytes further from bank to bank: lanes that read eight rows at once meet no other's bank. */
template <class E> constexpr int TILE_STRIDE = HEAD + PACK_BYTES / (int)sizeof(E);
template <class E> constexpr int TILE_ELEMENTS = ATTENTION_TILE *TILE_STRIDE<E>;

inline int head_pieces(const attention_shape *s)
{
    return (int)ceil_div(s->size, HEAD);
}

inline int time_tiles(const attention_shape *s)
{
    return (int)ceil_div(s->time, ATTENTION_TILE);
}

/* Some of the numbers of one head: position t's begin at p + t * row. */
template <class E> struct head_rows {
    E *p;
    int64_t row;
};

/* Which: 0 queries, 1 keys, 2 values. */
template <class E>
__device__ inline head_rows<E> rows_of_qkv(const attention_shape &s, E *qkv, int number, int which)
{
    const int64_t width = (int64_t)s.heads * s.size;
    const int64_t b = number / s.heads;
    const int64_t h = number % s.heads;
    return head_rows<E>{qkv + b * s.time * 3 * width + which * width + h * s.size, 3 * width};
}

template <class E> __device__ inline head_rows<E> rows_of_out(const attention_shape &s, E *out, int number)
{
    const int64_t width = (int64_t)s.heads * s.size;
    const int64_t b = number / s.heads;
    const int64_t h = number % s.heads;
    return head_rows<E>{out + b * s.time * width + h * s.size, width};
}

/* Two sets of the tiles that a block meets, of which one is computed with while the other comes. f32 has no room for that. */
template <class E> constexpr int STAGES = sizeof(E) == 2 ? 2 : 1;

/* Positions first.. and the piece's numbers into a tile; 0 for what is outside. `packed`: addresses allow packs, which are
 * asked for and not waited for (copy.cuh). */
template <class E>
__device__ inline void load_tile(E *tile, head_rows<const E> from, const attention_shape &s, int first,
                                 int piece, bool packed)
{
    const int col0 = piece * HEAD;

    if (packed) {
        constexpr int N = pack<E>::N;
        constexpr int PER_ROW = HEAD / N;
        for (int i = (int)threadIdx.x; i < ATTENTION_TILE * PER_ROW; i += ATTENTION_THREADS) {
            const int r = i / PER_ROW;
            const int c = i % PER_ROW * N;
            const bool inside = first + r < s.time && col0 + c < s.size;
            const E *at = inside ? from.p + (int64_t)(first + r) * from.row + col0 + c : from.p;
            copy16(tile + r * TILE_STRIDE<E> + c, at, inside);
        }
        return;
    }
    for (int i = (int)threadIdx.x; i < ATTENTION_TILE * HEAD; i += ATTENTION_THREADS) {
        const int r = i / HEAD;
        const int c = i % HEAD;
        const bool inside = first + r < s.time && col0 + c < s.size;
        tile[r * TILE_STRIDE<E> + c] = inside ? from.p[(int64_t)(first + r) * from.row + col0 + c] : (E)0.0F;
    }
}

/* Behind load_tile: what the block asked for is there, for all of it, but for the newest LEFT groups. */
template <int LEFT> __device__ inline void tiles_come()
{
    copy_commit();
    copy_wait<LEFT>();
    __syncthreads();
}

/* A warp's part of a product: 16 rows, ATTENTION_TILE columns. */
struct products {
    float v[EIGHTS][4];
};

__device__ inline void clear(products *c)
{
    UNROLL
    for (int j = 0; j < EIGHTS; j++)
        for (int i = 0; i < 4; i++)
            c->v[j][i] = 0;
}

__device__ inline int warp_of()
{
    return (int)threadIdx.x / WARP;
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

/* Over the row's four lanes. */
__device__ inline float quad_sum(float v)
{
    v += __shfl_xor_sync(ALL_LANES, v, 1);
    return v + __shfl_xor_sync(ALL_LANES, v, 2);
}

__device__ inline float quad_most(float v)
{
    const float a = __shfl_xor_sync(ALL_LANES, v, 1);
    v = a > v ? a : v;
    const float b = __shfl_xor_sync(ALL_LANES, v, 2);
    return b > v ? b : v;
}

/* c += a b^T: rows of `a` (the warp's 16) with rows of `b`, number by number. */
template <class E> __device__ inline void multiply_rows(products *c, const E *a, const E *b)
{
    constexpr int LD = TILE_STRIDE<E>;
    constexpr int N = pack<E>::N;
    const E *low = a + product_row(0) * LD;
    const E *high = a + product_row(2) * LD;

    for (int k = 0; k < HEAD; k += N) {
        const pack<E> x = load_pack(low + k);
        const pack<E> y = load_pack(high + k);
        UNROLL
        for (int j = 0; j < EIGHTS; j++) {
            const pack<E> u = load_pack(b + product_col(j, 0) * LD + k);
            const pack<E> w = load_pack(b + product_col(j, 1) * LD + k);
            for (int i = 0; i < N; i++) {
                c->v[j][0] = __fmaf_rn((float)x.v[i], (float)u.v[i], c->v[j][0]);
                c->v[j][1] = __fmaf_rn((float)x.v[i], (float)w.v[i], c->v[j][1]);
                c->v[j][2] = __fmaf_rn((float)y.v[i], (float)u.v[i], c->v[j][2]);
                c->v[j][3] = __fmaf_rn((float)y.v[i], (float)w.v[i], c->v[j][3]);
            }
        }
    }
}

/* c += a b: rows of `a` (the warp's 16, ATTENTION_TILE wide) with the columns of `b`. */
template <class E> __device__ inline void multiply_columns(products *c, const E *a, const E *b)
{
    constexpr int LD = TILE_STRIDE<E>;
    constexpr int N = pack<E>::N;
    const E *low = a + product_row(0) * LD;
    const E *high = a + product_row(2) * LD;

    for (int k = 0; k < ATTENTION_TILE; k += N) {
        const pack<E> x = load_pack(low + k);
        const pack<E> y = load_pack(high + k);
        for (int i = 0; i < N; i++) {
            const E *row = b + (k + i) * LD;
            UNROLL
            for (int j = 0; j < EIGHTS; j++) {
                const float u = (float)(row[product_col(j, 0)]);
                const float w = (float)(row[product_col(j, 1)]);
                c->v[j][0] = __fmaf_rn((float)x.v[i], u, c->v[j][0]);
                c->v[j][1] = __fmaf_rn((float)x.v[i], w, c->v[j][1]);
                c->v[j][2] = __fmaf_rn((float)y.v[i], u, c->v[j][2]);
                c->v[j][3] = __fmaf_rn((float)y.v[i], w, c->v[j][3]);
            }
        }
    }
}

/* The same by the tensor cores. */
template <> __device__ inline void multiply_rows<bf16>(products *c, const bf16 *a, const bf16 *b)
{
    constexpr int LD = TILE_STRIDE<bf16>;
    const int lane = (int)threadIdx.x % WARP;
    const bf16 *rows = a + lane % 16 * LD + lane / 16 * 8; /* 16 rows of 8 numbers, and of the next 8 */
    const bf16 *others =
        b + (lane % 8 + lane / 16 * 8) * LD + lane / 8 % 2 * 8; /* 8 rows twice, and 8 more */

    __syncwarp(); /* mma.sync wants all lanes at once; loads on conditions stand before it */
    UNROLL
    for (int k = 0; k < HEAD; k += 16) {
        uint32_t x[4];
        load_matrices(x, rows + k);
        UNROLL
        for (int j = 0; j < EIGHTS; j += 2) {
            uint32_t y[4];
            load_matrices(y, others + j * 8 * LD + k);
            multiply_m16n8k16(c->v[j], x, y);
            multiply_m16n8k16(c->v[j + 1], x, y + 2);
        }
    }
}

/* The warp's products into its own 16 rows of a tile, to be multiplied with again: no other warp reads them. */
template <class E> __device__ inline void store_products(E *tile, const products &c)
{
    __syncwarp(); /* the rows' last readers are done */
    UNROLL
    for (int j = 0; j < EIGHTS; j++)
        for (int i = 0; i < 4; i++)
            tile[product_row(i) * TILE_STRIDE<E> + product_col(j, i)] = (E)(c.v[j][i]);
    __syncwarp();
}

/* sum += p b: the warp's products with the columns of `b`, by way of its rows of a tile. */
template <class E>
__device__ inline void multiply_products(products *sum, const products &p, E *tile, const E *b)
{
    store_products(tile, p);
    multiply_columns(sum, tile, b);
}

/* Where the tensor cores leave a product is where they want their first operand: it stays in registers. */
template <>
__device__ inline void multiply_products<bf16>(products *sum, const products &p, bf16 *, const bf16 *b)
{
    constexpr int LD = TILE_STRIDE<bf16>;
    const int lane = (int)threadIdx.x % WARP;
    const bf16 *row = b + lane % 16 * LD + lane / 16 * 8; /* 16 rows of 8 columns, and of the next 8 */

    __syncwarp(); /* as in multiply_rows */
    UNROLL
    for (int n = 0; n < EIGHTS; n += 2) {
        const uint32_t x[4] = {pair_of(p.v[n][0], p.v[n][1]), pair_of(p.v[n][2], p.v[n][3]),
                               pair_of(p.v[n + 1][0], p.v[n + 1][1]), pair_of(p.v[n + 1][2], p.v[n + 1][3])};
        UNROLL
        for (int j = 0; j < EIGHTS; j += 2) {
            uint32_t y[4];
            load_turned(y, row + n * 8 * LD + j * 8);
            multiply_m16n8k16(sum->v[j], x, y);
            multiply_m16n8k16(sum->v[j + 1], x, y + 2);
        }
    }
}

/* Weights are powers, as exact as what becomes of them: of 2 by one instruction where they are rounded to an element, of e
 * where they are not. UNIT: how many of the exponent's units a natural one has. */
template <class E> constexpr float UNIT = sizeof(E) == 2 ? 1.44269504F : 1.0F;

template <class E> __device__ inline float weight_of(float x)
{
    return expf(x);
}

template <> __device__ inline float weight_of<bf16>(float x)
{
    return quick_exp2(x);
}

/* The warp's rows of a result: positions first + row, numbers of the piece, times `by` of its rows. */
template <class E>
__device__ inline void write_products(head_rows<E> to, const attention_shape &s, int first, int piece,
                                      const products &c, float by_low, float by_high)
{
    UNROLL
    for (int j = 0; j < EIGHTS; j++)
        for (int i = 0; i < 4; i++) {
            const int t = first + product_row(i);
            const int col = piece * HEAD + product_col(j, i);
            if (t < s.time && col < s.size)
                to.p[(int64_t)t * to.row + col] = (E)(c.v[j][i] * (i < 2 ? by_low : by_high));
        }
}

} // namespace

#endif
