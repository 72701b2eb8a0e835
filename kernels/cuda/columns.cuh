/* columns.cuh - sums of columns in f64, in a fixed order, for gradients of biases and for statistics.
 *
 * Values: a struct with E, the element that is read; N, how many sums a column has; COLS, how many columns a thread takes, side by
 *         side; and  void add(int row, int col, sum *v) const, which adds COLS times N numbers, those of a column side by side.
 *         What a thread adds up is sum_of_few<E>, what threads do f64.
 * Finish: a struct with  void put(int col, const double *sum) const.
 *
 * Rows are cut into parts, a block per part and WARP times COLS columns; then a block per WARP columns adds the parts up, a thread
 * every COLUMN_ROWS-th, and these sums in order. Where one part is enough, its block finishes.
 */
#ifndef TK_KERNELS_CUDA_COLUMNS_CUH
#define TK_KERNELS_CUDA_COLUMNS_CUH

#include "kernels/cuda/vector.cuh"

namespace
{

constexpr int COLUMN_ROWS = 8; /* rows of a block's threads; WARP columns */

template <class Finish, int N>
__global__ void columns_finish(Finish finish, const double *part, int parts, int cols)
{
    SHARED(double, mine, COLUMN_ROWS *WARP *N);
    const int col = (int)(blockIdx.x * WARP + threadIdx.x);
    double sum[N] = {};

    UNROLL_4
    for (int p = (int)threadIdx.y; p < parts && col < cols; p += COLUMN_ROWS)
        for (int i = 0; i < N; i++)
            sum[i] += part[((int64_t)p * cols + col) * N + i];
    for (int i = 0; i < N; i++)
        mine[((int)threadIdx.y * WARP + (int)threadIdx.x) * N + i] = sum[i];
    __syncthreads();
    if (threadIdx.y != 0 || col >= cols)
        return;
    for (int y = 1; y < COLUMN_ROWS; y++)
        for (int i = 0; i < N; i++)
            sum[i] += mine[(y * WARP + (int)threadIdx.x) * N + i];
    finish.put(col, sum);
}

template <class Values, class Finish>
__global__ void columns_part(Values values, Finish finish, double *part, int rows, int cols, int part_rows)
{
    constexpr int N = Values::N * Values::COLS;
    typedef typename sum_of_few<typename Values::E>::type sum_type;
    SHARED(double, mine, COLUMN_ROWS *WARP *N);
    const int col = (int)(blockIdx.x * WARP + threadIdx.x) * Values::COLS;
    const int first = (int)blockIdx.y * part_rows;
    const int end = rows - first < part_rows ? rows : first + part_rows;
    sum_type sum[N] = {};

    if (col < cols)
        UNROLL_4
    for (int r = first + (int)threadIdx.y; r < end; r += COLUMN_ROWS)
        values.add(r, col, sum);
    for (int i = 0; i < N; i++)
        mine[(i * COLUMN_ROWS + (int)threadIdx.y) * WARP + (int)threadIdx.x] = (double)sum[i];
    __syncthreads();
    for (int k = (int)threadIdx.y; k < Values::COLS && col < cols; k += COLUMN_ROWS) {
        double all[Values::N] = {};
        for (int i = 0; i < Values::N; i++)
            for (int y = 0; y < COLUMN_ROWS; y++)
                all[i] += mine[((k * Values::N + i) * COLUMN_ROWS + y) * WARP + (int)threadIdx.x];
        if (gridDim.y == 1)
            finish.put(col + k, all);
        for (int i = 0; i < Values::N && gridDim.y > 1; i++)
            part[((int64_t)blockIdx.y * cols + col + k) * Values::N + i] = all[i];
    }
}

/* How the rows are cut: parts 0 where there are too many columns for c->parts (2 million). */
struct column_cut {
    int64_t across; /* blocks beside each other */
    int64_t parts;
    int part_rows;
};

inline column_cut columns_cut(struct cuda *c, int rows, int cols, int numbers, int64_t across, int per_sm)
{
    const int64_t fit = (int64_t)(CUDA_PARTS_BYTES / (sizeof(double) * (size_t)numbers)) / cols;
    const int64_t want = ceil_div(per_sm * (int64_t)c->sms, across);
    const int64_t most = ceil_div(rows, 4 * COLUMN_ROWS);
    int64_t parts = want < most ? want : most;

    if (fit < 1) {
        cuda_note(c, cudaErrorInvalidConfiguration, "sums of that many columns");
        return column_cut{across, 0, 0};
    }
    parts = parts < fit ? parts : fit;
    const int part_rows = (int)ceil_div(rows, parts);
    return column_cut{across, ceil_div(rows, part_rows), part_rows};
}

template <class Values, class Finish>
void columns_sum(struct cuda *c, int rows, int cols, Values values, Finish finish)
{
    constexpr int COLS = Values::COLS;
    const column_cut cut =
        columns_cut(c, rows, cols, Values::N, ceil_div(cols, WARP * COLS), COLS > 1 ? 4 : 2);
    const dim3 threads(WARP, COLUMN_ROWS);
    double *part = (double *)c->parts;

    if (!cut.parts)
        return;
    LAUNCH(c, dim3((unsigned)cut.across, (unsigned)cut.parts), threads, (columns_part<Values, Finish>),
           values, finish, part, rows, cols, cut.part_rows);
    if (cut.parts > 1)
        LAUNCH(c, blocks_for(cols, WARP), threads, (columns_finish<Finish, Values::N>), finish, part,
               (int)cut.parts, cols);
}

/* The sums of a gradient's columns: a bias's gradient. With `out`, behind a ReLU; then `own` gets the gradient in front of it. */
template <class Element, int COLUMNS> struct bias_gradient {
    typedef Element E;
    static constexpr int N = 1;
    static constexpr int COLS = COLUMNS;
    const E *dout, *out;
    E *own;
    int cols;
    template <class S> __device__ void add(int row, int col, S *v) const
    {
        const int64_t i = (int64_t)row * cols + col;
        piece<E, COLS> x = load_piece<E, COLS>(dout + i);
        if (out) {
            const piece<E, COLS> y = load_piece<E, COLS>(out + i);
            UNROLL
            for (int k = 0; k < COLS; k++)
                x.v[k] = y.v[k] > 0 ? x.v[k] : (E)0.0F;
            store_piece(own + i, x);
        }
        UNROLL
        for (int k = 0; k < COLS; k++)
            v[k] += (S)(float)x.v[k];
    }
};

struct bias_store {
    float *to; /* or NULL */
    __device__ void put(int col, const double *sum) const
    {
        if (to)
            to[col] = (float)sum[0];
    }
};

} // namespace

#endif
