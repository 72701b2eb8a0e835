/* split.cuh - products of two operands that need not be matrices: C (rows, cols) = sum over k of A(row, k) B(col, k), in f32.
 *
 * An operand is a struct that knows how to read element (outer, k), where outer is a row of C for A and a column for B:
 *
 *     static constexpr bool K_FAST;    neighbours in k lie side by side in memory (else neighbours in outer do)
 *     static constexpr bool QUADS;     four such neighbours, from a multiple of 4, may be read at once (as K_FAST: k is one, too)
 *     struct outer; struct step;       what of the address depends on one of the two alone, computed once
 *     outer at_outer(int), step at_step(int);
 *     float read(outer, step);         0 for what is outside (padding)
 *     quad;                            with QUADS: what  quad read_quad(outer, step)  has read, that becomes a pack<float>, zeros
 *                                      for quad{}: what is computed of it waits for its own reads alone
 *
 * A block computes a tile of C; while it multiplies one step of k, it reads the next. Where the tiles are too few to fill the
 * GPU, k is cut into parts, one per blockIdx.z, and the block that comes last to its tile adds them up: in an order that the
 * number of parts alone decides.
 */
#ifndef TK_KERNELS_CUDA_SPLIT_CUH
#define TK_KERNELS_CUDA_SPLIT_CUH

#include "kernels/cuda/vector.cuh"

#include <type_traits>

namespace
{

constexpr int QUAD = pack<float>::N;
constexpr int STEP = 16; /* of k */
constexpr int FAN = 16;  /* parts that one block adds up */

/* A block's tile: ROWS x COLS, of which a thread computes TALL x QUAD. So many BLOCKS have registers on a multiprocessor. */
template <int ROWS_, int COLS_, int TALL_, int BLOCKS_> struct tile_cut {
    static constexpr int BLOCKS = BLOCKS_;
    static constexpr int ROWS = ROWS_;
    static constexpr int COLS = COLS_;
    static constexpr int TALL = TALL_;
    static constexpr int ACROSS = COLS / QUAD;
    static constexpr int THREADS = ROWS / TALL * ACROSS;
};
typedef tile_cut<32, 32, 2, 5> small_cut;
typedef tile_cut<64, 32, 4, 5> middle_cut;
typedef tile_cut<64, 64, 8, 4> large_cut;
typedef tile_cut<128, 32, 8, 3> narrow_cut;

__device__ inline int at_most(int a, int b)
{
    return a < b ? a : b;
}

/* One operand's part of a thread's work: N quads of every tile. */
template <class X, int SIDE, int THREADS> struct quad_reader {
    static constexpr int N = SIDE * STEP / QUAD / THREADS;
    static constexpr int ACROSS = X::K_FAST ? STEP / QUAD : SIDE / QUAD;
    static constexpr int SINGLES = X::QUADS ? 1 : QUAD;
    static constexpr int OUTERS = X::K_FAST ? N : SINGLES;
    static constexpr int STEPS = X::K_FAST ? SINGLES : N;
    static constexpr int LD = SIDE + QUAD;
    static_assert(N * THREADS * QUAD == SIDE * STEP, "a tile is whole quads of all threads");
    typename X::outer mine[OUTERS];
    typedef std::conditional_t<X::QUADS, typename X::quad, pack<float>> kept;
    kept v[N];

    static __device__ int outer_of(int i)
    {
        const int at = (int)threadIdx.x + i * THREADS;
        return X::K_FAST ? at / ACROSS : at % ACROSS * QUAD;
    }
    static __device__ int k_of(int i)
    {
        const int at = (int)threadIdx.x + i * THREADS;
        return X::K_FAST ? at % ACROSS * QUAD : at / ACROSS;
    }

    /* Beyond the last row or column it reads that one again, for nobody. */
    __device__ void open(const X &x, int first, int all)
    {
        const int last = X::K_FAST || !X::QUADS ? all - 1 : (all - 1) / QUAD * QUAD;
        UNROLL
        for (int i = 0; i < OUTERS; i++)
            mine[i] = x.at_outer(at_most(first + (X::K_FAST ? outer_of(i) : outer_of(0) + i), last));
    }

    __device__ kept quad_at(const X &x, int i, const typename X::step *steps, int left) const
    {
        kept q = {};
        if constexpr (X::QUADS) {
            if (left > 0)
                q = x.read_quad(mine[X::K_FAST ? i : 0], steps[X::K_FAST ? 0 : i]);
        } else {
            UNROLL
            for (int j = 0; j < QUAD; j++)
                if (left > (X::K_FAST ? j : 0))
                    q.v[j] = x.read(mine[X::K_FAST ? i : j], steps[X::K_FAST ? j : i]);
        }
        return q;
    }

    /* The tile that begins at k, up to `end`. */
    __device__ void fetch(const X &x, int k, int end)
    {
        typename X::step steps[STEPS];
        UNROLL
        for (int i = 0; i < STEPS; i++)
            steps[i] = x.at_step(at_most(k + (X::K_FAST ? k_of(0) + i : k_of(i)), end - 1));
        UNROLL
        for (int i = 0; i < N; i++)
            v[i] = quad_at(x, i, steps, end - k - k_of(i));
    }

    __device__ void put(float *tile) const
    {
        UNROLL
        for (int i = 0; i < N; i++) {
            const pack<float> q = v[i];
            if (!X::K_FAST)
                store_pack(tile + k_of(i) * LD + outer_of(i), q);
            UNROLL
            for (int j = 0; j < QUAD && X::K_FAST; j++)
                tile[(k_of(i) + j) * LD + outer_of(i)] = q.v[j];
        }
    }
};

template <class Cut>
__device__ inline void multiply_step(pack<float> (&sum)[Cut::TALL], const float *a, const float *b)
{
    UNROLL
    for (int k = 0; k < STEP; k++) {
        const piece<float, Cut::TALL> of_a = load_wide<Cut::TALL>(a + k * (Cut::ROWS + QUAD));
        const pack<float> of_b = load_pack(b + k * (Cut::COLS + QUAD));
        UNROLL
        for (int y = 0; y < Cut::TALL; y++)
            UNROLL
        for (int x = 0; x < QUAD; x++)
            sum[y].v[x] = __fmaf_rn(of_a.v[y], of_b.v[x], sum[y].v[x]);
    }
}

/* The sum of a tile's parts, on the block that comes last; false on all others. `room` has a place for each part of each tile,
 * `arrived` a number, 0 before and behind. Parts are added up as a tree: FAN of them by whoever comes last to them, which then is
 * one of the next FAN. */
template <int N, int THREADS>
__device__ inline bool sum_parts(pack<float> (&sum)[N], float *room, unsigned *arrived)
{
    SHARED(unsigned, before, 1);
    const int parts = (int)gridDim.z;
    int part = (int)blockIdx.z;

    room += ((int64_t)blockIdx.x * parts * N * THREADS + threadIdx.x) * QUAD;
    arrived += (int64_t)blockIdx.x * parts;
    for (int apart = 1, level = 0; apart < parts; apart *= FAN, level++) {
        const int node = part / (apart * FAN) * (apart * FAN);
        const int children = at_most(FAN, (parts - node + apart - 1) / apart);
        if (children == 1)
            continue;
        UNROLL
        for (int i = 0; i < N; i++)
            store_pack(room + ((int64_t)part * N + i) * THREADS * QUAD, sum[i]);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            *before = atomicInc(arrived + node + level, (unsigned)children - 1);
        __syncthreads();
        if (*before != (unsigned)children - 1)
            return false;
        __threadfence();
        UNROLL
        for (int i = 0; i < N; i++)
            sum[i] = pack<float>{};
        UNROLL_8
        for (int child = 0; child < children; child++)
            UNROLL
        for (int i = 0; i < N; i++) {
            const pack<float> x =
                load_pack(room + ((int64_t)(node + child * apart) * N + i) * THREADS * QUAD);
            UNROLL
            for (int j = 0; j < QUAD; j++)
                sum[i].v[j] += x.v[j];
        }
        part = node;
    }
    return true;
}

struct split_shape {
    int rows, cols, k;
    int k_part; /* of one part; a multiple of STEP */
    int row_tiles;
};

/* Store: put(row, col, const float *v, n): n neighbours of a row, QUAD of them or what is left at its end. */
template <class Cut, class A, class B, class Store>
__global__ void __launch_bounds__(Cut::THREADS, Cut::BLOCKS)
    split_product(split_shape s, A a, B b, Store store, float *room, unsigned *arrived)
{
    constexpr int OF_A = STEP * (Cut::ROWS + QUAD);
    constexpr int OF_BOTH = OF_A + STEP * (Cut::COLS + QUAD);
    SHARED(float, memory, 2 * OF_BOTH);
    const int row0 = (int)blockIdx.x % s.row_tiles * Cut::ROWS;
    const int col0 = (int)blockIdx.x / s.row_tiles * Cut::COLS;
    const int row = (int)threadIdx.x / Cut::ACROSS * Cut::TALL;
    const int col = (int)threadIdx.x % Cut::ACROSS * QUAD;
    const int begin = (int)blockIdx.z * s.k_part;
    const int end = s.k - begin < s.k_part ? s.k : begin + s.k_part;
    quad_reader<A, Cut::ROWS, Cut::THREADS> read_a;
    quad_reader<B, Cut::COLS, Cut::THREADS> read_b;
    pack<float> sum[Cut::TALL] = {};
    float *tile = memory;

    read_a.open(a, row0, s.rows);
    read_b.open(b, col0, s.cols);
    read_a.fetch(a, begin, end);
    read_b.fetch(b, begin, end);
    for (int k = begin; k < end; k += STEP) {
        read_a.put(tile);
        read_b.put(tile + OF_A);
        __syncthreads(); /* whoever still multiplies does so in the other half */
        if (k + STEP < end) {
            read_a.fetch(a, k + STEP, end);
            read_b.fetch(b, k + STEP, end);
        }
        multiply_step<Cut>(sum, tile + row, tile + OF_A + col);
        tile = tile == memory ? memory + OF_BOTH : memory;
    }
    if (gridDim.z > 1 && !sum_parts<Cut::TALL, Cut::THREADS>(sum, room, arrived))
        return;
    UNROLL
    for (int y = 0; y < Cut::TALL; y++)
        if (row0 + row + y < s.rows && col0 + col < s.cols)
            store.put(row0 + row + y, col0 + col, sum[y].v, at_most(s.cols - col0 - col, QUAD));
}

template <class Cut> int64_t tiles_of(int rows, int cols)
{
    return ceil_div(rows, Cut::ROWS) * ceil_div(cols, Cut::COLS);
}

/* Whether every multiprocessor has two of so many blocks. */
inline bool fills(const struct cuda *c, int64_t blocks)
{
    return blocks >= 2 * (int64_t)c->sms;
}

/* Into how many parts to cut k: until the blocks fill the GPU, or a part is 4 steps. bytes: of memory for parts. */
template <class Cut> int64_t parts_of(const struct cuda *c, int rows, int cols, int k, int64_t bytes)
{
    const int64_t tiles = tiles_of<Cut>(rows, cols);
    const int64_t most[] = {ceil_div(k, 4 * STEP), FAN * FAN, CUDA_ARRIVED / tiles,
                            bytes / (tiles * Cut::ROWS * Cut::COLS * (int64_t)sizeof(float))};
    int64_t n = (2 * (int64_t)c->sms + tiles / 2) / tiles;
    for (const int64_t m : most)
        n = n < m ? n : m;
    return n > 1 ? n : 1;
}

/* Tiles of C lie in blockIdx.x alone, rows first: the other two end at 65,535, and C may be wide. With one part, c->parts is
 * left alone. */
template <class Cut, class A, class B, class Store>
void split_launch(struct cuda *c, int rows, int cols, int k, int64_t parts, A a, B b, Store store)
{
    const int part = (int)(ceil_div(ceil_div(k, parts), STEP) * STEP);
    const split_shape s = {rows, cols, k, part, (int)ceil_div(rows, Cut::ROWS)};

    LAUNCH(c, dim3((unsigned)tiles_of<Cut>(rows, cols), 1, (unsigned)ceil_div(k, part)), Cut::THREADS,
           (split_product<Cut, A, B, Store>), s, a, b, store, (float *)c->parts,
           (unsigned *)((char *)c->parts + CUDA_PARTS_BYTES));
}

template <class Cut, class A, class B, class Store>
void product_launch(struct cuda *c, int rows, int cols, int k, A a, B b, Store store)
{
    split_launch<Cut>(c, rows, cols, k, parts_of<Cut>(c, rows, cols, k, CUDA_PARTS_BYTES), a, b, store);
}

} // namespace

#endif
