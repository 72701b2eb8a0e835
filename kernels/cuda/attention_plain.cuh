/* attention_plain.cuh - the plain path of attention: every element, any size of a head, any alignment.
 *
 * Each row's logarithm of its sum comes first. From it weights are made whenever they are needed, and every result is a sum of
 * rows times weights: a block owns a tile of positions and TILE numbers of their results (blockIdx.z says which), meets tile
 * after tile of other positions, makes both tiles' weights in shared memory and adds up. All products are tile.cuh's, in f32.
 */
#ifndef TK_KERNELS_CUDA_ATTENTION_PLAIN_CUH
#define TK_KERNELS_CUDA_ATTENTION_PLAIN_CUH

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/tile.cuh"

namespace
{

/* A thread's numbers of a tile: rows tile_row() .., columns tile_col() .. */
typedef float part[MINE][MINE];

/* c += a b^T, positions a0 .. of a head's rows by positions b0 .. */
template <class E>
__device__ inline void add_products(part &c, float *memory, const attention_shape &s, head_rows<const E> a,
                                    int a0, head_rows<const E> b, int b0)
{
    tile_add(c, memory, single_matrix<true, E, int64_t>{{a.p}, a.row}, a0, s.time,
             single_matrix<true, E, int64_t>{{b.p}, b.row}, b0, s.time, 0, s.size);
}

/* lse of a tile of queries, which meets the keys up to them. */
template <class E>
__global__ void __launch_bounds__(TILE_THREADS) attention_plain_lse(attention_job j, float *lse)
{
    SHARED(float, memory, TILE_MEMORY);
    constexpr int ROW_LANES = TILE / MINE; /* that share a row: neighbours in a warp */
    const attention_shape &s = j.s;
    const int number = (int)blockIdx.x;
    const int own0 = (int)blockIdx.y * TILE;
    const head_rows<const E> queries = rows_of(s, (const E *)j.qkv, number, QUERIES);
    const head_rows<const E> keys = rows_of(s, (const E *)j.qkv, number, KEYS);
    float most[MINE], sum[MINE];

    for (int y = 0; y < MINE; y++)
        most[y] = -INFINITY, sum[y] = 0;
    for (int met0 = 0; met0 <= own0; met0 += TILE) {
        part c = {};
        add_products(c, memory, s, queries, own0, keys, met0);
        for (int y = 0; y < MINE; y++) {
            const float before = most[y];
            float added = 0;
            for (int x = 0; x < MINE; x++) {
                const bool seen = met0 + tile_col() + x <= own0 + tile_row() + y;
                c[y][x] = seen ? c[y][x] * j.scale : -INFINITY;
                most[y] = c[y][x] > most[y] ? c[y][x] : most[y];
            }
            most[y] = lanes_most<ROW_LANES>(most[y]);
            for (int x = 0; x < MINE; x++)
                added += expf(c[y][x] - most[y]);
            sum[y] = sum[y] * expf(before - most[y]) + lanes_sum<ROW_LANES>(added);
        }
    }
    for (int y = 0; y < MINE; y++)
        if (tile_col() == 0 && own0 + tile_row() + y < s.time)
            lse[(int64_t)number * s.time + own0 + tile_row() + y] = most[y] + logf(sum[y]);
}

/* OUTPUT, or the gradients of QUERIES, KEYS or VALUES. A tile of queries meets the keys up to them; one of keys and values
 * meets the queries from them on. With w the weight of a query and a key, and dw the product of the query's dout and the key's
 * value, the gradient of their product is w (dw - dot). */
template <class E, int RESULT>
__global__ void __launch_bounds__(TILE_THREADS, 2) attention_plain_sums(attention_job j)
{
    SHARED(float, memory, TILE_MEMORY);
    SHARED(float, weights, TILE *TILE_LD);
    constexpr bool OF_QUERIES = RESULT == QUERIES || RESULT == OUTPUT;
    constexpr bool BY_WEIGHTS = RESULT == VALUES || RESULT == OUTPUT; /* not by gradients of products */
    const attention_shape &s = j.s;
    const int number = j.first + (int)blockIdx.x;
    const int own0 = (int)blockIdx.y * TILE;
    const int number0 = (int)blockIdx.z * TILE;
    const float *lse = j.lse + (int64_t)number * s.time;
    const head_rows<const E> queries = rows_of(s, (const E *)j.qkv, number, QUERIES);
    const head_rows<const E> keys = rows_of(s, (const E *)j.qkv, number, KEYS);
    const head_rows<const E> values = rows_of(s, (const E *)j.qkv, number, VALUES);
    const head_rows<const E> dout =
        RESULT == OUTPUT ? queries : rows_of(s, (const E *)j.dout, number, OUTPUT);
    const head_rows<const E> met = OF_QUERIES ? keys : queries;
    const head_rows<const E> met_too = OF_QUERIES ? values : dout;
    const head_rows<const E> adds = BY_WEIGHTS ? met_too : met;
    const head_rows<E> to = rows_of(s, (E *)j.to, number, RESULT);
    const int end = OF_QUERIES ? own0 + 1 : s.time;
    part sum = {};

    for (int met0 = OF_QUERIES ? 0 : own0; met0 < end; met0 += TILE) {
        part c = {};
        part dw = {};
        add_products(c, memory, s, OF_QUERIES ? queries : keys, own0, met, met0);
        if (!BY_WEIGHTS)
            add_products(dw, memory, s, OF_QUERIES ? dout : values, own0, met_too, met0);
        for (int y = 0; y < MINE; y++)
            for (int x = 0; x < MINE; x++) {
                const int mine = own0 + tile_row() + y;
                const int theirs = met0 + tile_col() + x;
                const int query = OF_QUERIES ? mine : theirs;
                const bool seen = query < s.time && (OF_QUERIES ? theirs : mine) <= query;
                float w = seen ? expf(c[y][x] * j.scale - lse[query]) : 0.0F;
                if (!BY_WEIGHTS && seen)
                    w *= (dw[y][x] - j.dot[(int64_t)blockIdx.x * s.time + query]) * j.scale;
                weights[(tile_row() + y) * TILE_LD + tile_col() + x] = w;
            }
        __syncthreads();
        tile_add(sum, memory, single_matrix<true, float, int64_t>{{weights}, TILE_LD}, 0, TILE,
                 single_matrix<false, E, int64_t>{{adds.p + met0 * adds.row}, adds.row}, number0, s.size, 0,
                 at_most(TILE, s.time - met0));
    }
    for (int y = 0; y < MINE; y++)
        for (int x = 0; x < MINE; x++) {
            const int t = own0 + tile_row() + y;
            const int at = number0 + tile_col() + x;
            if (t < s.time && at < s.size)
                to.p[t * to.row + at] = (E)sum[y][x];
        }
}

inline dim3 plain_grid(const attention_job &j)
{
    return dim3((unsigned)j.n, (unsigned)ceil_div(j.s.time, TILE), (unsigned)ceil_div(j.s.size, TILE));
}

template <class E> void plain_forward(struct cuda *c, const attention_job &j, float *lse)
{
    const dim3 grid = plain_grid(j);

    LAUNCH(c, dim3(grid.x, grid.y), TILE_THREADS, attention_plain_lse<E>, j, lse);
    LAUNCH(c, grid, TILE_THREADS, (attention_plain_sums<E, OUTPUT>), j);
}

template <class E> void plain_backward(struct cuda *c, const attention_job &j)
{
    const dim3 grid = plain_grid(j);

    LAUNCH(c, grid, TILE_THREADS, (attention_plain_sums<E, QUERIES>), j);
    LAUNCH(c, grid, TILE_THREADS, (attention_plain_sums<E, KEYS>), j);
    LAUNCH(c, grid, TILE_THREADS, (attention_plain_sums<E, VALUES>), j);
}

} // namespace

#endif
