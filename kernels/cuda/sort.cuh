/* sort.cuh - rows in the order of their keys, rows of one key in their own order: a stable sort, so whoever adds up the
 * rows of a key does so in the same order every time.
 *
 * Eight bits of the key at a time, lowest first. Rows are cut into tiles; a row's rank among the tile's rows of the same
 * digit is counted, not drawn by atomics; then every digit of every tile is given its place.
 */
#ifndef TK_KERNELS_CUDA_SORT_CUH
#define TK_KERNELS_CUDA_SORT_CUH

#include "kernels/cuda/grid.h"

namespace
{

constexpr int SORT_BITS = 8;
constexpr int SORT_DIGITS = 1 << SORT_BITS;
constexpr int SORT_TILE = 1024; /* rows, and threads */

/* What it works in, of one piece of memory. */
struct sort_room {
    uint32_t *order[2]; /* (rows) */
    uint32_t *place;    /* (SORT_DIGITS, tiles) */
};

inline int64_t sort_tiles(int64_t rows)
{
    return ceil_div(rows, SORT_TILE);
}

inline size_t sort_bytes(int64_t rows)
{
    return (size_t)(2 * rows + SORT_DIGITS * sort_tiles(rows)) * sizeof(uint32_t);
}

/* Keys come as floats that are whole numbers: token numbers (embedding.h). */
__device__ inline uint32_t sort_digit(const float *key, uint32_t row, int shift)
{
    return (uint32_t)key[row] >> shift & (SORT_DIGITS - 1);
}

/* The rank of this thread's row among those of its tile that have its digit; *last: none of them stands behind it. */
__device__ inline int sort_rank(const int *digit, int t, int n, bool *last)
{
    int before = 0;
    int after = 0;

    for (int i = 0; i < n; i++) {
        before += i < t && digit[i] == digit[t];
        after += i > t && digit[i] == digit[t];
    }
    *last = after == 0;
    return before;
}

/* order NULL: the rows as they stand. count: zeroed before; written where the tile has the digit. */
__global__ void __launch_bounds__(SORT_TILE)
    sort_count(uint32_t *count, const float *key, const uint32_t *order, int64_t rows, int shift)
{
    SHARED(int, digit, SORT_TILE);
    const int t = (int)threadIdx.x;
    const int64_t first = (int64_t)blockIdx.x * SORT_TILE;
    const int n = (int)(rows - first < SORT_TILE ? rows - first : SORT_TILE);
    bool last;

    if (t < n)
        digit[t] = (int)sort_digit(key, order ? order[first + t] : (uint32_t)(first + t), shift);
    __syncthreads();
    if (t >= n)
        return;
    const int rank = sort_rank(digit, t, n, &last);
    if (last)
        count[(int64_t)digit[t] * gridDim.x + blockIdx.x] = (uint32_t)rank + 1;
}

/* count[i] becomes the sum of those before it. One block: each thread adds up its part, then the parts before it. */
__global__ void __launch_bounds__(SORT_TILE) sort_places(uint32_t *count, int64_t n)
{
    SHARED(uint32_t, part, SORT_TILE);
    const int t = (int)threadIdx.x;
    const int64_t each = ceil_div(n, SORT_TILE);
    const int64_t first = t * each < n ? t * each : n;
    const int64_t end = first + each < n ? first + each : n;
    uint32_t sum = 0;

    for (int64_t i = first; i < end; i++)
        sum += count[i];
    part[t] = sum;
    __syncthreads();
    for (int d = 1; d < SORT_TILE; d *= 2) {
        const uint32_t more = t >= d ? part[t - d] : 0;
        __syncthreads();
        part[t] += more;
        __syncthreads();
    }
    uint32_t at = part[t] - sum;
    for (int64_t i = first; i < end; i++) {
        const uint32_t own = count[i];
        count[i] = at;
        at += own;
    }
}

__global__ void __launch_bounds__(SORT_TILE) sort_move(uint32_t *to, const uint32_t *place, const float *key,
                                                       const uint32_t *order, int64_t rows, int shift)
{
    SHARED(int, digit, SORT_TILE);
    const int t = (int)threadIdx.x;
    const int64_t first = (int64_t)blockIdx.x * SORT_TILE;
    const int n = (int)(rows - first < SORT_TILE ? rows - first : SORT_TILE);
    uint32_t row = 0;
    bool last;

    if (t < n) {
        row = order ? order[first + t] : (uint32_t)(first + t);
        digit[t] = (int)sort_digit(key, row, shift);
    }
    __syncthreads();
    if (t < n)
        to[place[(int64_t)digit[t] * gridDim.x + blockIdx.x] + (uint32_t)sort_rank(digit, t, n, &last)] = row;
}

/* The rows by their keys, which are below `keys`; `room` holds sort_bytes(rows). */
inline const uint32_t *sort_rows(struct cuda *c, void *room, const float *key, int64_t rows, int64_t keys)
{
    const int64_t tiles = sort_tiles(rows);
    uint32_t *memory = (uint32_t *)room;
    const sort_room r = {{memory, memory + rows}, memory + 2 * rows};
    const uint32_t *order = nullptr;
    int into = 0;

    for (int shift = 0; shift == 0 || (keys - 1) >> shift; shift += SORT_BITS) {
        c->ctx.ops->zero(&c->ctx, r.place, (size_t)(SORT_DIGITS * tiles) * sizeof(uint32_t));
        LAUNCH(c, (unsigned)tiles, SORT_TILE, sort_count, r.place, key, order, rows, shift);
        LAUNCH(c, 1, SORT_TILE, sort_places, r.place, SORT_DIGITS * tiles);
        LAUNCH(c, (unsigned)tiles, SORT_TILE, sort_move, r.order[into], (const uint32_t *)r.place, key, order,
               rows, shift);
        order = r.order[into];
        into = !into;
    }
    return order;
}

} // namespace

#endif
