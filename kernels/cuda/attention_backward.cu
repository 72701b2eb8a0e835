/* attention_backward.cu - the gradients: weights are made again from each row's logarithm of its sum.
 *
 * With w the weights of a row and dw their gradients, those of the products are w (dw - dot), dot the product of the row's
 * output with its gradient. A block for each tile of keys adds up theirs and the values' over all queries behind, another
 * for each tile of queries theirs over all keys before: every sum in a fixed order, for two products more than with atomics.
 */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

/* dot[(head, t)] of heads first .. */
template <class E>
__global__ void attention_dots(attention_shape s, float *dot, const E *out, const E *dout, int first,
                               int64_t rows)
{
    for (int64_t i = row_first(); i < rows; i += row_stride()) {
        const int number = first + (int)(i / s.time);
        const int64_t t = i % s.time;
        const head_rows<const E> o = rows_of_out(s, out, number);
        const head_rows<const E> d = rows_of_out(s, dout, number);
        float sum = 0;
        for (int c = lane(); c < s.size; c += WARP)
            sum = __fmaf_rn((float)(o.p[t * o.row + c]), (float)(d.p[t * d.row + c]), sum);
        sum = warp_sum(sum);
        if (lane() == 0)
            dot[i] = sum;
    }
}

/* The tiles of a block, and the warp's own rows of a product of them where that does not stay in registers: a sixth tile of f32
 * is more than GPUs of 8.6, 8.9 and 12.0 have for a block (99 KB). */
template <class E> constexpr int BACKWARD_TILES = 2 + 2 * STAGES<E> + (STAGES<E> == 1);
template <class E> constexpr size_t BACKWARD_BYTES = BACKWARD_TILES<E> *TILE_ELEMENTS<E> * sizeof(E);

template <class E> struct backward_tiles {
    E *mine[2]; /* what the block stays with: keys and values, or queries and dout */
    E *sets;    /* what it meets, one set of two behind the other */
    E *weights; /* behind one set */
    __device__ explicit backward_tiles(char *memory)
    {
        E *at = (E *)memory;
        for (int i = 0; i < 2; i++)
            mine[i] = at + i * TILE_ELEMENTS<E>;
        sets = at + 2 * TILE_ELEMENTS<E>;
        weights = at + 4 * TILE_ELEMENTS<E> + warp_of() * WARP_ROWS * TILE_STRIDE<E>;
    }
    __device__ E *theirs(int set, int i) const
    {
        return sets + (2 * set + i) * TILE_ELEMENTS<E>;
    }
};

/* One head of one sequence. */
template <class E> struct backward_head {
    head_rows<const E> of[4]; /* queries, keys, values, dout */
    const float *lse, *dot;
};

enum { QUERIES, KEYS, VALUES, DOUT };

template <class E> struct backward_job {
    attention_shape s;
    const E *qkv, *dout;
    const float *lse, *dot;
    E *dqkv;
    float scale;
    int first; /* head of the launch; dot begins with it */
    int pieces;
    bool packed;
    bool ahead; /* the next tiles come while these are computed with */
    __device__ backward_head<E> head(int i) const
    {
        const int number = first + i;
        return backward_head<E>{{rows_of_qkv(s, qkv, number, 0), rows_of_qkv(s, qkv, number, 1),
                                 rows_of_qkv(s, qkv, number, 2), rows_of_out(s, dout, number)},
                                lse + (int64_t)number * s.time,
                                dot + (int64_t)i * s.time};
    }
};

/* Who is multiplied with whom: of backward_head.of, and where the block's own begin. */
struct backward_pairs {
    int own[2], met[2];
    int own0;
};

template <class E>
__device__ void load_own(const backward_job<E> &j, const backward_head<E> &h, const backward_tiles<E> &tiles,
                         const backward_pairs &of, int piece)
{
    UNROLL
    for (int i = 0; i < 2; i++)
        load_tile(tiles.mine[i], h.of[of.own[i]], j.s, of.own0, piece, j.packed);
}

template <class E>
__device__ void load_met(const backward_job<E> &j, const backward_head<E> &h, const backward_tiles<E> &tiles,
                         const backward_pairs &of, int set, int met0, int piece)
{
    UNROLL
    for (int i = 0; i < 2; i++)
        load_tile(tiles.theirs(set, i), h.of[of.met[i]], j.s, met0, piece, j.packed);
}

/* Before the first two_products. */
template <class E>
__device__ void begin_products(const backward_job<E> &j, const backward_head<E> &h,
                               const backward_tiles<E> &tiles, const backward_pairs &of, int met0)
{
    if (!j.ahead)
        return;
    load_own(j, h, tiles, of, 0);
    load_met(j, h, tiles, of, 0, met0, 0);
    copy_commit();
}

template <class E> __device__ inline void multiply_both(const backward_tiles<E> &tiles, int set, products *c)
{
    const int rows = warp_of() * WARP_ROWS * TILE_STRIDE<E>;

    UNROLL
    for (int i = 0; i < 2; i++)
        multiply_rows(&c[i], tiles.mine[i] + rows, tiles.theirs(set, i));
}

/* Two products of the same rows with the same others, the turn'th of them at met0, over all pieces of a head. The piece that
 * is loaded last is `piece`. Returns the set it lies in. */
template <class E>
__device__ int two_products(const backward_job<E> &j, const backward_head<E> &h,
                            const backward_tiles<E> &tiles, const backward_pairs &of, int met0, int turn,
                            bool last, int piece, products *c)
{
    UNROLL
    for (int i = 0; i < 2; i++)
        clear(&c[i]);
    if (j.ahead) {
        const int set = turn % 2;
        __syncthreads(); /* the other set's last readers are done */
        if (!last)
            load_met(j, h, tiles, of, 1 - set, met0 + ATTENTION_TILE, 0);
        tiles_come<1>();
        multiply_both(tiles, set, c);
        return set;
    }
    for (int n = 1; n <= j.pieces; n++) {
        const int p = (piece + n) % j.pieces;
        __syncthreads();
        if (turn == 0 || j.pieces > 1)
            load_own(j, h, tiles, of, p);
        load_met(j, h, tiles, of, 0, met0, p);
        tiles_come<0>();
        multiply_both(tiles, 0, c);
    }
    return 0;
}

/* c[0] the product of a query and a key, c[1] that of the query's dout and the key's value: they become the weight and its
 * product's gradient. */
template <class E>
__device__ inline void weigh_again(float *product, float *gradient, float scale, float lse, float dot,
                                   bool seen)
{
    const float w = seen ? weight_of<E>(__fmaf_rn(*product, scale * UNIT<E>, -lse * UNIT<E>)) : 0.0F;
    *gradient = seen ? w * (*gradient - dot) * scale : 0.0F;
    *product = w;
}

template <class E>
__global__ void __launch_bounds__(ATTENTION_THREADS) attention_key_value_gradients(backward_job<E> j)
{
    SHARED_BY_LAUNCH(memory);
    const backward_tiles<E> tiles(memory);
    const backward_head<E> h = j.head((int)blockIdx.x);
    const int key0 = (int)blockIdx.y * ATTENTION_TILE;
    const int piece = (int)blockIdx.z;
    const int mine = key0 + warp_of() * WARP_ROWS;
    const backward_pairs of = {{KEYS, VALUES}, {QUERIES, DOUT}, key0};
    products dkeys, dvalues;

    clear(&dkeys);
    clear(&dvalues);
    begin_products(j, h, tiles, of, key0);
    for (int turn = 0, query0 = key0; query0 < j.s.time; turn++, query0 += ATTENTION_TILE) {
        products c[2];
        const int set =
            two_products(j, h, tiles, of, query0, turn, query0 + ATTENTION_TILE >= j.s.time, piece, c);
        const bool whole = turn > 0 && query0 + ATTENTION_TILE <= j.s.time; /* every query sees every key */
        UNROLL
        for (int e = 0; e < EIGHTS; e++)
            for (int i = 0; i < 4; i++) {
                const int query = query0 + product_col(e, i);
                const bool inside = whole || query < j.s.time;
                weigh_again<E>(&c[0].v[e][i], &c[1].v[e][i], j.scale, inside ? h.lse[query] : 0.0F,
                               inside ? h.dot[query] : 0.0F,
                               whole || (inside && mine + product_row(i) <= query));
            }
        multiply_products(&dvalues, c[0], tiles.weights, tiles.theirs(set, 1));
        multiply_products(&dkeys, c[1], tiles.weights, tiles.theirs(set, 0));
    }
    write_products(rows_of_qkv(j.s, j.dqkv, j.first + (int)blockIdx.x, 1), j.s, mine, piece, dkeys, 1.0F,
                   1.0F);
    write_products(rows_of_qkv(j.s, j.dqkv, j.first + (int)blockIdx.x, 2), j.s, mine, piece, dvalues, 1.0F,
                   1.0F);
}

template <class E>
__global__ void __launch_bounds__(ATTENTION_THREADS) attention_query_gradients(backward_job<E> j)
{
    SHARED_BY_LAUNCH(memory);
    const backward_tiles<E> tiles(memory);
    const backward_head<E> h = j.head((int)blockIdx.x);
    const int query0 = (int)(gridDim.y - 1 - blockIdx.y) * ATTENTION_TILE;
    const int piece = (int)blockIdx.z;
    const int mine = query0 + warp_of() * WARP_ROWS;
    const backward_pairs of = {{QUERIES, DOUT}, {KEYS, VALUES}, query0};
    float lse[2], dot[2];
    products dqueries;

    UNROLL
    for (int half = 0; half < 2; half++) {
        const int t = mine + product_row(2 * half);
        lse[half] = t < j.s.time ? h.lse[t] : 0.0F;
        dot[half] = t < j.s.time ? h.dot[t] : 0.0F;
    }
    clear(&dqueries);
    begin_products(j, h, tiles, of, 0);
    for (int turn = 0, key0 = 0; key0 <= query0; turn++, key0 += ATTENTION_TILE) {
        products c[2];
        const int set = two_products(j, h, tiles, of, key0, turn, key0 == query0, piece, c);
        const bool whole = key0 < query0 && query0 + ATTENTION_TILE <= j.s.time;
        UNROLL
        for (int e = 0; e < EIGHTS; e++)
            for (int i = 0; i < 4; i++) {
                const int query = mine + product_row(i);
                weigh_again<E>(&c[0].v[e][i], &c[1].v[e][i], j.scale, lse[i / 2], dot[i / 2],
                               whole || (query < j.s.time && key0 + product_col(e, i) <= query));
            }
        multiply_products(&dqueries, c[1], tiles.weights, tiles.theirs(set, 0));
    }
    write_products(rows_of_qkv(j.s, j.dqkv, j.first + (int)blockIdx.x, 0), j.s, mine, piece, dqueries, 1.0F,
                   1.0F);
}

/* As many heads at a time as leave room for their dots. */
template <class E>
void run_backward(struct cuda *c, const attention_shape *s, void *dqkv, const void *dout, const void *out,
                  const float *lse, const void *qkv)
{
    float *dot = (float *)c->parts;
    const int heads = s->batch * s->heads;
    const int fit = (int)(CUDA_PARTS_BYTES / sizeof(float) / (size_t)s->time);
    backward_job<E> j = {
        *s, (const E *)qkv, (const E *)dout, lse,  dot, (E *)dqkv, 1.0F / sqrtf((float)s->size),
        0,  head_pieces(s), false,           false};

    j.packed = pack_aligned(qkv) && pack_aligned(dout) && s->size % pack<E>::N == 0;
    j.ahead = STAGES<E> == 2 && j.packed && j.pieces == 1;
    if (fit < 1) {
        cuda_note(c, cudaErrorInvalidConfiguration, "attention over that many positions");
        return;
    }
    for (; j.first < heads; j.first += fit) {
        const int n = heads - j.first < fit ? heads - j.first : fit;
        const dim3 grid((unsigned)n, (unsigned)time_tiles(s), (unsigned)j.pieces);
        LAUNCH(c, row_blocks(n * s->time), ROW_THREADS, attention_dots<E>, *s, dot, (const E *)out, j.dout,
               j.first, (int64_t)n * s->time);
        LAUNCH_SHARED(c, grid, ATTENTION_THREADS, BACKWARD_BYTES<E>, attention_key_value_gradients<E>, j);
        LAUNCH_SHARED(c, grid, ATTENTION_THREADS, BACKWARD_BYTES<E>, attention_query_gradients<E>, j);
    }
}

} // namespace

void cuda_attention_backward(struct kctx *ctx, const struct attention_shape *s, void *dqkv, const void *dout,
                             const void *out, const float *lse, const void *qkv)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, s, dqkv, dout, out, lse, qkv);
}
