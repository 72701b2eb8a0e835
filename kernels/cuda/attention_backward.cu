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
__global__ void dots(attention_shape s, float *dot, const E *out, const E *dout, int first, int64_t rows)
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

/* The tiles of a block, and the warp's own rows of a product of them: a sixth tile of f32 is more than GPUs of 8.6, 8.9 and
 * 12.0 have for a block (99 KB). */
template <class E> constexpr size_t BACKWARD_BYTES = 5 * TILE_ELEMENTS<E> * sizeof(E);

template <class E> struct backward_tiles {
    E *mine[2];   /* what the block stays with: keys and values, or queries and dout */
    E *theirs[2]; /* what it meets */
    E *weights;
    __device__ explicit backward_tiles(char *memory)
    {
        E *at = (E *)memory;
        for (int i = 0; i < 2; i++) {
            mine[i] = at + i * TILE_ELEMENTS<E>;
            theirs[i] = at + (2 + i) * TILE_ELEMENTS<E>;
        }
        weights = at + 4 * TILE_ELEMENTS<E> + warp_of() * WARP_ROWS * TILE_STRIDE<E>;
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
    __device__ backward_head<E> head(int i) const
    {
        const int number = first + i;
        return backward_head<E>{{rows_of_qkv(s, qkv, number, 0), rows_of_qkv(s, qkv, number, 1),
                                 rows_of_qkv(s, qkv, number, 2), rows_of_out(s, dout, number)},
                                lse + (int64_t)number * s.time,
                                dot + (int64_t)i * s.time};
    }
};

/* Two products of the same rows with the same others, over all pieces of a head: `own` and `met` say which of
 * backward_head.of. The piece that is loaded last is `piece`. */
template <class E>
__device__ void two_products(const backward_job<E> &j, const backward_head<E> &h,
                             const backward_tiles<E> &tiles, const int (&own)[2], int own0,
                             const int (&met)[2], int met0, int piece, bool first_time, products *c)
{
    const int rows = warp_of() * WARP_ROWS * TILE_STRIDE<E>;

    UNROLL
    for (int i = 0; i < 2; i++)
        clear(&c[i]);
    for (int n = 1; n <= j.pieces; n++) {
        const int p = (piece + n) % j.pieces;
        __syncthreads();
        UNROLL
        for (int i = 0; i < 2; i++) {
            if (first_time || j.pieces > 1)
                load_tile(tiles.mine[i], h.of[own[i]], j.s, own0, p, j.packed);
            load_tile(tiles.theirs[i], h.of[met[i]], j.s, met0, p, j.packed);
        }
        __syncthreads();
        UNROLL
        for (int i = 0; i < 2; i++)
            multiply_rows(&c[i], tiles.mine[i] + rows, tiles.theirs[i]);
    }
}

/* c[0] the product of a query and a key, c[1] that of the query's dout and the key's value: they become the weight and its
 * product's gradient. */
template <class E>
__device__ inline void weigh_again(float *product, float *gradient, float scale, float lse, float dot,
                                   bool seen)
{
    const float w = seen ? weight_of<E>(*product * scale - lse) : 0.0F;
    *gradient = seen ? w * (*gradient - dot) * scale : 0.0F;
    *product = w;
}

template <class E> __global__ void __launch_bounds__(ATTENTION_THREADS) keys_and_values(backward_job<E> j)
{
    SHARED_BY_LAUNCH(memory);
    const backward_tiles<E> tiles(memory);
    const backward_head<E> h = j.head((int)blockIdx.x);
    const int key0 = (int)blockIdx.y * ATTENTION_TILE;
    const int piece = (int)blockIdx.z;
    const int mine = key0 + warp_of() * WARP_ROWS;
    const int own[2] = {KEYS, VALUES};
    const int met[2] = {QUERIES, DOUT};
    products dkeys, dvalues;

    clear(&dkeys);
    clear(&dvalues);
    for (int query0 = key0; query0 < j.s.time; query0 += ATTENTION_TILE) {
        products c[2];
        two_products(j, h, tiles, own, key0, met, query0, piece, query0 == key0, c);
        UNROLL
        for (int e = 0; e < EIGHTS; e++)
            for (int i = 0; i < 4; i++) {
                const int query = query0 + product_col(e, i);
                const bool inside = query < j.s.time;
                weigh_again<E>(&c[0].v[e][i], &c[1].v[e][i], j.scale, inside ? h.lse[query] : 0.0F,
                               inside ? h.dot[query] : 0.0F, inside && mine + product_row(i) <= query);
            }
        store_products(tiles.weights, c[0]);
        multiply_columns(&dvalues, tiles.weights, tiles.theirs[1]);
        store_products(tiles.weights, c[1]);
        multiply_columns(&dkeys, tiles.weights, tiles.theirs[0]);
    }
    write_products(rows_of_qkv(j.s, j.dqkv, j.first + (int)blockIdx.x, 1), j.s, mine, piece, dkeys, 1.0F,
                   1.0F);
    write_products(rows_of_qkv(j.s, j.dqkv, j.first + (int)blockIdx.x, 2), j.s, mine, piece, dvalues, 1.0F,
                   1.0F);
}

template <class E> __global__ void __launch_bounds__(ATTENTION_THREADS) queries(backward_job<E> j)
{
    SHARED_BY_LAUNCH(memory);
    const backward_tiles<E> tiles(memory);
    const backward_head<E> h = j.head((int)blockIdx.x);
    const int query0 = (int)(gridDim.y - 1 - blockIdx.y) * ATTENTION_TILE;
    const int piece = (int)blockIdx.z;
    const int mine = query0 + warp_of() * WARP_ROWS;
    const int own[2] = {QUERIES, DOUT};
    const int met[2] = {KEYS, VALUES};
    float lse[2], dot[2];
    products dqueries;

    UNROLL
    for (int half = 0; half < 2; half++) {
        const int t = mine + product_row(2 * half);
        lse[half] = t < j.s.time ? h.lse[t] : 0.0F;
        dot[half] = t < j.s.time ? h.dot[t] : 0.0F;
    }
    clear(&dqueries);
    for (int key0 = 0; key0 <= query0; key0 += ATTENTION_TILE) {
        products c[2];
        two_products(j, h, tiles, own, query0, met, key0, piece, key0 == 0, c);
        UNROLL
        for (int e = 0; e < EIGHTS; e++)
            for (int i = 0; i < 4; i++) {
                const int query = mine + product_row(i);
                weigh_again<E>(&c[0].v[e][i], &c[1].v[e][i], j.scale, lse[i / 2], dot[i / 2],
                               query < j.s.time && key0 + product_col(e, i) <= query);
            }
        store_products(tiles.weights, c[1]);
        multiply_columns(&dqueries, tiles.weights, tiles.theirs[0]);
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
    backward_job<E> j = {*s,
                         (const E *)qkv,
                         (const E *)dout,
                         lse,
                         dot,
                         (E *)dqkv,
                         1.0F / sqrtf((float)s->size),
                         0,
                         head_pieces(s),
                         false};

    j.packed = pack_aligned(qkv) && pack_aligned(dout) && s->size % pack<E>::N == 0;
    if (fit < 1) {
        cuda_note(c, cudaErrorInvalidConfiguration, "attention over that many positions");
        return;
    }
    for (; j.first < heads; j.first += fit) {
        const int n = heads - j.first < fit ? heads - j.first : fit;
        const dim3 grid((unsigned)n, (unsigned)time_tiles(s), (unsigned)j.pieces);
        LAUNCH(c, row_blocks(n * s->time), ROW_THREADS, dots<E>, *s, dot, (const E *)out, j.dout, j.first,
               (int64_t)n * s->time);
        LAUNCH_SHARED(c, grid, ATTENTION_THREADS, BACKWARD_BYTES<E>, keys_and_values<E>, j);
        LAUNCH_SHARED(c, grid, ATTENTION_THREADS, BACKWARD_BYTES<E>, queries<E>, j);
    }
}

} // namespace

void cuda_attention_backward(struct kctx *ctx, const struct attention_shape *s, void *dqkv, const void *dout,
                             const void *out, const float *lse, const void *qkv)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, s, dqkv, dout, out, lse, qkv);
}
