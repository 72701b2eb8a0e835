/* attention_fast.cu - the fast path of attention, by the tensor cores.
 *
 * Forwards a block takes a tile of queries, and meets tile after tile of keys; each row's softmax is made in passing, so the
 * weights of a row exist a tile at a time. Backwards they are made again from each row's logarithm of its sum: with w the
 * weights of a row and dw their gradients, those of the products are w (dw - dot), dot the product of the row's output with
 * its gradient. A block for each tile of keys adds up theirs and the values' over all queries behind, another for each tile
 * of queries theirs over all keys before: every sum in a fixed order, for two products more than with atomics.
 */
#include "kernels/cuda/attention_fast.cuh"

namespace
{

/* A row's softmax so far. */
struct softmax_rows {
    float most[2], sum[2]; /* rows product_row(0) and product_row(2) */
};

/* Where a query does not see a key, their product becomes one whose weight is 0. Rows of c are queries, or keys with `turned`. */
__device__ inline void hide_later_keys(products *c, int row0, int col0, bool turned)
{
    UNROLL
    for (int j = 0; j < EIGHTS; j++)
        for (int i = 0; i < 4; i++) {
            const int row = row0 + product_row(i);
            const int col = col0 + product_col(j, i);
            if (turned ? row > col : col > row)
                c->v[j][i] = -INFINITY;
        }
}

/* Products of a tile into weights: *c becomes 2^(c scale - most). Returns by how much what was summed before shrinks. scale is
 * above 0. */
__device__ void weigh(products *c, softmax_rows *rows, float scale, float *shrink)
{
    UNROLL
    for (int half = 0; half < 2; half++) {
        float most = -INFINITY;
        UNROLL
        for (int j = 0; j < EIGHTS; j++)
            for (int i = 2 * half; i < 2 * half + 2; i++)
                most = fmaxf(c->v[j][i], most); /* NaN is passed over; its weight is NaN */
        most = lanes_most<4>(most) * scale;
        most = fmaxf(rows->most[half], most);
        float sum = 0;
        UNROLL
        for (int j = 0; j < EIGHTS; j++)
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                c->v[j][i] = quick_exp2(__fmaf_rn(c->v[j][i], scale, -most));
                sum += c->v[j][i];
            }
        shrink[half] = quick_exp2(rows->most[half] - most);
        rows->sum[half] = rows->sum[half] * shrink[half] + lanes_sum<4>(sum);
        rows->most[half] = most;
    }
}

__device__ inline void scale_rows(products *c, const float *by)
{
    UNROLL
    for (int j = 0; j < EIGHTS; j++)
        for (int i = 0; i < 4; i++)
            c->v[j][i] *= by[i / 2];
}

/* A warp has UNITS times WARP_ROWS queries, so that what it reads of keys and values serves more products. */
constexpr int UNITS = 2;
constexpr int QUERY_ROWS = UNITS * FAST_TILE;

/* The queries, and the sets of keys and values. */
constexpr size_t FORWARD_BYTES = (UNITS + 4) * TILE_BYTES;

__global__ void __launch_bounds__(FAST_THREADS, 3) attention_forward_tiles(attention_job job, float *lse)
{
    SHARED_BY_LAUNCH(memory);
    const attention_shape &s = job.s;
    const bf16 *qkv = (const bf16 *)job.qkv;
    bf16 *q = (bf16 *)memory;
    const int number = (int)blockIdx.x;
    /* Late queries have the most keys: they go first. */
    const int query0 = (int)(gridDim.y - 1 - blockIdx.y) * QUERY_ROWS;
    const int end = query0 + QUERY_ROWS < s.time ? query0 + QUERY_ROWS : s.time; /* of keys that they see */
    const int mine = UNITS * warp_row();
    const met_tiles met = {
        q + UNITS * TILE_ELEMENTS, {rows_of(s, qkv, number, KEYS), rows_of(s, qkv, number, VALUES)}, s.time};
    softmax_rows rows[UNITS];
    products sum[UNITS] = {};

    UNROLL
    for (int u = 0; u < UNITS; u++) {
        rows[u] = softmax_rows{{-INFINITY, -INFINITY}, {0, 0}};
        load_tile(q + u * TILE_ELEMENTS, rows_of(s, qkv, number, QUERIES), s.time, query0 + u * FAST_TILE);
    }
    met.begin(0);
    for (int turn = 0, key0 = 0; key0 < end; turn++, key0 += FAST_TILE) {
        const bf16 *keys = met.next(turn, key0, key0 + FAST_TILE >= end);
        products c[UNITS] = {};
        float shrink[2];
        if (key0 >= query0 + mine + UNITS * WARP_ROWS)
            continue; /* later than all queries of the warp */
        multiply_rows<UNITS>(c, q + mine * TILE_STRIDE, keys);
        UNROLL
        for (int u = 0; u < UNITS; u++) {
            if (key0 + FAST_TILE > query0 + mine)
                hide_later_keys(&c[u], query0 + mine + u * WARP_ROWS, key0, false);
            weigh(&c[u], &rows[u], job.scale * LOG2_E, shrink);
            scale_rows(&sum[u], shrink);
        }
        multiply_products<UNITS>(sum, c, keys + TILE_ELEMENTS);
    }
    UNROLL
    for (int u = 0; u < UNITS; u++) {
        const float mean[2] = {1.0F / rows[u].sum[0], 1.0F / rows[u].sum[1]};
        const int first = query0 + mine + u * WARP_ROWS;
        scale_rows(&sum[u], mean);
        write_products(rows_of(s, (bf16 *)job.to, number, OUTPUT), s.time, first, sum[u], 1);
        for (int half = 0; half < 2; half++) {
            const int t = first + product_row(2 * half);
            if (threadIdx.x % 4 == 0 && t < s.time)
                lse[(int64_t)number * s.time + t] = rows[u].most[half] / LOG2_E + logf(rows[u].sum[half]);
        }
    }
}

/* ---- gradients ---- */

/* What the block stays with (keys and values, or queries and dout), and the sets that it meets. */
constexpr size_t BACKWARD_BYTES = 6 * TILE_BYTES;

/* The warp's rows of both own tiles with all of both that are met. */
__device__ inline void two_products(products *c, const bf16 *own, const bf16 *met)
{
    UNROLL
    for (int i = 0; i < 2; i++)
        multiply_rows<1>(&c[i], own + i * TILE_ELEMENTS + warp_row() * TILE_STRIDE, met + i * TILE_ELEMENTS);
}

/* *product: of a query and a key; *gradient: of the query's dout and the key's value. They become the weight, and the gradient of
 * a query with a key but for the scale. power: the logarithm of the row's sum, to the base of 2; infinite behind the last query,
 * whose weights are 0. scale: to the base of 2, too. */
__device__ inline void weigh_again(float *product, float *gradient, float scale, float power, float dot)
{
    const float w = quick_exp2(__fmaf_rn(*product, scale, -power));

    *gradient = w * (*gradient - dot);
    *product = w;
}

/* What a thread brings of a tile of queries, in front of everything that the tile's products wait for: power or dot of a query. */
__device__ inline float tile_number(const float *lse, const float *dot, int first, int time)
{
    const int query = first + (int)threadIdx.x % FAST_TILE;

    if (threadIdx.x < FAST_TILE)
        return query < time ? lse[query] * LOG2_E : INFINITY;
    return query < time ? dot[query] : 0.0F;
}

/* In shared memory, in two sets as met_tiles: FAST_TILE powers, FAST_TILE dots. */
constexpr int TILE_NUMBERS = 2 * FAST_TILE;
static_assert(TILE_NUMBERS == FAST_THREADS, "a thread brings a number");

/* All products of a tile of queries with the warp's keys. */
__device__ inline void weigh_columns(products *c, const float *numbers, float scale)
{
    UNROLL
    for (int e = 0; e < EIGHTS; e++) {
        const piece<float, 2> power = load_piece<float, 2>(numbers + product_col(e, 0));
        const piece<float, 2> dot = load_piece<float, 2>(numbers + FAST_TILE + product_col(e, 0));
        UNROLL
        for (int i = 0; i < 4; i++)
            weigh_again(&c[0].v[e][i], &c[1].v[e][i], scale, power.v[i % 2], dot.v[i % 2]);
    }
}

__global__ void __launch_bounds__(FAST_THREADS, 3) attention_key_value_gradients(attention_job j)
{
    SHARED_BY_LAUNCH(memory);
    SHARED(float, numbers, 2 * TILE_NUMBERS);
    const attention_shape &s = j.s;
    const int number = j.first + (int)blockIdx.x;
    const bf16 *qkv = (const bf16 *)j.qkv;
    const float *lse = j.lse + (int64_t)number * s.time;
    const float *dot = j.dot + (int64_t)blockIdx.x * s.time;
    bf16 *own = (bf16 *)memory;
    const met_tiles met = {
        own + 2 * TILE_ELEMENTS,
        {rows_of(s, qkv, number, QUERIES), rows_of(s, (const bf16 *)j.dout, number, OUTPUT)},
        s.time};
    const int key0 = (int)blockIdx.y * FAST_TILE;
    const int mine = key0 + warp_row();
    products dkeys = {};
    products dvalues = {};

    float next = tile_number(lse, dot, key0, s.time);
    load_tile(own, rows_of(s, qkv, number, KEYS), s.time, key0);
    load_tile(own + TILE_ELEMENTS, rows_of(s, qkv, number, VALUES), s.time, key0);
    met.begin(key0);
    for (int turn = 0, query0 = key0; query0 < s.time; turn++, query0 += FAST_TILE) {
        float *now = numbers + turn % 2 * TILE_NUMBERS;
        now[threadIdx.x] = next; /* whose last readers were done before the tile before this one was there */
        next = tile_number(lse, dot, query0 + FAST_TILE, s.time);
        const bf16 *queries = met.next(turn, query0, query0 + FAST_TILE >= s.time);
        products c[2] = {};
        two_products(c, own, queries);
        if (turn == 0)
            hide_later_keys(&c[0], mine, query0, true);
        weigh_columns(c, now, j.scale * LOG2_E);
        multiply_products<1>(&dvalues, &c[0], queries + TILE_ELEMENTS);
        multiply_products<1>(&dkeys, &c[1], queries);
    }
    write_products(rows_of(s, (bf16 *)j.to, number, KEYS), s.time, mine, dkeys, j.scale);
    write_products(rows_of(s, (bf16 *)j.to, number, VALUES), s.time, mine, dvalues, 1);
}

__global__ void __launch_bounds__(FAST_THREADS) attention_query_gradients(attention_job j)
{
    SHARED_BY_LAUNCH(memory);
    const attention_shape &s = j.s;
    const int number = j.first + (int)blockIdx.x;
    const bf16 *qkv = (const bf16 *)j.qkv;
    bf16 *own = (bf16 *)memory;
    const met_tiles met = {
        own + 2 * TILE_ELEMENTS, {rows_of(s, qkv, number, KEYS), rows_of(s, qkv, number, VALUES)}, s.time};
    const int query0 = (int)(gridDim.y - 1 - blockIdx.y) * FAST_TILE;
    const int mine = query0 + warp_row();
    float power[2], dot[2];
    products dqueries = {};

    UNROLL
    for (int half = 0; half < 2; half++) {
        const int t = mine + product_row(2 * half);
        power[half] = t < s.time ? j.lse[(int64_t)number * s.time + t] * LOG2_E : INFINITY;
        dot[half] = t < s.time ? j.dot[(int64_t)blockIdx.x * s.time + t] : 0.0F;
    }
    load_tile(own, rows_of(s, qkv, number, QUERIES), s.time, query0);
    load_tile(own + TILE_ELEMENTS, rows_of(s, (const bf16 *)j.dout, number, OUTPUT), s.time, query0);
    met.begin(0);
    for (int turn = 0, key0 = 0; key0 <= query0; turn++, key0 += FAST_TILE) {
        const bf16 *keys = met.next(turn, key0, key0 == query0);
        products c[2] = {};
        two_products(c, own, keys);
        if (key0 == query0)
            hide_later_keys(&c[0], mine, key0, false);
        UNROLL
        for (int e = 0; e < EIGHTS; e++)
            for (int i = 0; i < 4; i++)
                weigh_again(&c[0].v[e][i], &c[1].v[e][i], j.scale * LOG2_E, power[i / 2], dot[i / 2]);
        multiply_products<1>(&dqueries, &c[1], keys);
    }
    write_products(rows_of(s, (bf16 *)j.to, number, QUERIES), s.time, mine, dqueries, j.scale);
}

} // namespace

void attention_fast_forward(struct cuda *c, const attention_job &j, float *lse)
{
    LAUNCH_SHARED(c, fast_grid(j, QUERY_ROWS), FAST_THREADS, FORWARD_BYTES, attention_forward_tiles, j, lse);
}

void attention_fast_backward(struct cuda *c, const attention_job &j)
{
    LAUNCH_SHARED(c, fast_grid(j, FAST_TILE), FAST_THREADS, BACKWARD_BYTES, attention_key_value_gradients, j);
    LAUNCH_SHARED(c, fast_grid(j, FAST_TILE), FAST_THREADS, BACKWARD_BYTES, attention_query_gradients, j);
}
