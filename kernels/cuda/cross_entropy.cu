/* cross_entropy.cu - cross entropy on a GPU: a warp per row, then the sum over rows. */
#include "kernels/cuda/loss.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

/* Is v at place i rather the row's first largest than w at place j? A NaN is larger than all. */
__device__ bool beats(float v, int i, float w, int j)
{
    bool v_nan = v != v;
    bool w_nan = w != w;
    if (v_nan != w_nan)
        return v_nan;
    return v_nan || v == w ? i < j : v > w;
}

__device__ int first_largest(const float *x, int n)
{
    int best = lane() < n ? lane() : 0;
    float most = x[best];
    for (int c = lane(); c < n; c += WARP)
        if (beats(x[c], c, most, best)) {
            most = x[c];
            best = c;
        }
    for (int d = WARP / 2; d > 0; d /= 2) {
        float v = __shfl_xor_sync(ALL_LANES, most, d);
        int i = __shfl_xor_sync(ALL_LANES, best, d);
        if (beats(v, i, most, best)) {
            most = v;
            best = i;
        }
    }
    return best;
}

struct batch {
    const float *logits;
    const int32_t *labels;
    float *dlogits;
    int rows, classes; /* rows: of the whole batch, which the gradient is a mean over */
    double smoothing, own,
        other; /* own, other: of a row's label, and of each class, in the mean's gradient */
    float share;
};

/* What it costs to be wrong about row r; its gradient is written where one is wanted. */
__device__ double row_loss(const batch &b, int64_t r, int label, int top)
{
    const float *x = b.logits + r * b.classes;
    const float most = x[top];
    const double mine = (double)x[label] - (double)most;
    double sum = 0;
    double all = 0;

    for (int c = lane(); c < b.classes; c += WARP) {
        sum += (double)expf(x[c] - most);
        all += (double)x[c] - (double)most;
    }
    sum = warp_sum(sum);
    all = warp_sum(all);
    const double scale = 1 / (sum * b.rows);
    for (int c = lane(); c < b.classes && b.dlogits; c += WARP) {
        double p = (double)expf(x[c] - most) * scale;
        b.dlogits[r * b.classes + c] = (float)(p - (c == label ? b.own : b.other)) * b.share;
    }
    return log(sum) - (b.smoothing > 0 ? (1 - b.smoothing) * mine + b.smoothing / b.classes * all : mine);
}

/* Of row r, on its warp's first lane. */
__device__ loss_part part_of(const batch &b, int64_t r)
{
    const int label = b.labels[r];
    const bool good = label >= 0 && label < b.classes;
    const int top = first_largest(b.logits + r * b.classes, b.classes);
    const double loss = row_loss(b, r, good ? label : 0, top);
    return good ? loss_part{loss, top == label, NO_BAD_ROW} : loss_part{NAN, 0, (int)r};
}

__global__ void cross_entropy_rows(batch b, loss_part *part, int first, int n)
{
    for (int64_t i = row_first(); i < n; i += row_stride()) {
        const loss_part own = part_of(b, first + i);
        if (lane() == 0)
            part[i] = own;
    }
}

constexpr int BLOCK_ROWS = 32; /* a block has at most so many warps */

/* Few rows in one block, which then adds up their losses in the order of loss_sum_kernel: one kernel instead of two. */
__global__ void __launch_bounds__(BLOCK_ROWS *WARP) cross_entropy_few_rows(batch b, loss_target to)
{
    SHARED(loss_part, row, BLOCK_ROWS);
    const int r = (int)threadIdx.x / WARP;
    loss_part sum = {0, 0, NO_BAD_ROW};

    if (r < b.rows)
        sum = part_of(b, r);
    if (lane() == 0)
        row[r] = sum;
    __syncthreads();
    if (r != 0)
        return;
    for (int half = BLOCK_ROWS / 2; half > 0; half /= 2) {
        if (lane() < half)
            row[lane()] = loss_add()(row[lane()], row[lane() + half]);
        __syncwarp();
    }
    if (lane() == 0)
        loss_write(to, row[0]);
}

} // namespace

void cuda_queue_cross_entropy(struct kctx *ctx, struct queued_loss *result, float *mean, float *dlogits,
                              const float *logits, const int32_t *labels, int rows, int classes,
                              double smoothing, float share, bool add)
{
    struct cuda *c = cuda_of(ctx);
    const double spread = smoothing / classes;
    const batch b = {
        logits,        labels, dlogits, rows, classes, smoothing, (1 - smoothing + spread) / rows,
        spread / rows, share};
    loss_target to = {result, 1, add, loss_mean{mean, rows, share}};

    if (rows <= BLOCK_ROWS) {
        LAUNCH(c, 1, BLOCK_ROWS * WARP, cross_entropy_few_rows, b, to);
        return;
    }
    for (int first = 0; first < rows; first += LOSS_PARTS_MAX) {
        int n = rows - first < LOSS_PARTS_MAX ? rows - first : LOSS_PARTS_MAX;
        LAUNCH(c, row_blocks(n), ROW_THREADS, cross_entropy_rows, b, (loss_part *)c->parts, first, n);
        loss_sum(c, to, n);
        to.add = true;
    }
}
