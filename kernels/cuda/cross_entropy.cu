/* cross_entropy.cu - cross entropy on a GPU: a warp per row, then the sum over rows. */
#include "kernels/cuda/cross_entropy.cuh"

namespace
{

__global__ void cross_entropy_rows(batch b, loss_part *part, int first, int n)
{
    for (int64_t i = row_first(); i < n; i += row_stride()) {
        const loss_part own = part_of(b, first + i);
        if (lane() == 0)
            part[i] = own;
    }
}

/* Few rows in one block, a warp each; it adds up their losses in the order of loss_sum_kernel: one kernel instead of two. */
__global__ void __launch_bounds__(BLOCK_ROWS *WARP) cross_entropy_few_rows(batch b, loss_target to)
{
    SHARED(loss_part, row, BLOCK_ROWS);

    few_rows(b, row);
    if (threadIdx.x == 0)
        loss_write(to, row[0]);
}

} // namespace

void cuda_queue_cross_entropy(struct kctx *ctx, struct queued_loss *result, float *mean, float *dlogits,
                              const float *logits, const int32_t *labels, int rows, int classes,
                              double smoothing, float share, bool add)
{
    struct cuda *c = cuda_of(ctx);
    const batch b = batch_of(logits, labels, dlogits, rows, classes, smoothing, share);
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

int cuda_cross_entropy(struct kctx *ctx, struct cross_entropy_result *result, float *dlogits,
                       const float *logits, const int32_t *labels, int rows, int classes, double smoothing,
                       struct err *err)
{
    struct cuda *c = cuda_of(ctx);

    cuda_queue_cross_entropy(ctx, c->loss, nullptr, dlogits, logits, labels, rows, classes, smoothing, 1,
                             false);
    return loss_get(c, result, "cross_entropy", labels, classes, err);
}
