/* mse.cu - mean squared error on a GPU: sums by blocks, then their sum. */
#include "kernels/cuda/loss.cuh"

namespace
{

constexpr int BLOCKS_MAX = 1024;

__global__ void mse_squares(float *dout, const float *out, const float *target, int64_t n, float scale,
                            float share, loss_part *part)
{
    SHARED(double, mine, LOSS_THREADS);
    double sum = 0;

    for (int64_t i = each_first(); i < n; i += each_stride()) {
        float d = out[i] - target[i];
        sum += (double)d * (double)d;
        if (dout)
            dout[i] = scale * d * share;
    }
    sum = block_reduce<LOSS_THREADS>(mine, sum, plus());
    if (threadIdx.x == 0)
        part[blockIdx.x] = loss_part{sum, 0, NO_BAD_ROW};
}

} // namespace

void cuda_queue_mse(struct kctx *ctx, struct queued_loss *result, float *mean, float *dout, const float *out,
                    const float *target, int rows, int cols, float share, bool add)
{
    struct cuda *c = cuda_of(ctx);
    const int64_t n = (int64_t)rows * cols;
    const unsigned most = blocks_for(n, LOSS_THREADS);
    const unsigned blocks = most < BLOCKS_MAX ? most : BLOCKS_MAX;

    LAUNCH(c, blocks, LOSS_THREADS, mse_squares, dout, out, target, n, (float)(2.0 / (double)n), share,
           (loss_part *)c->parts);
    loss_sum(c, loss_target{result, (double)cols, add, loss_mean{mean, rows, share}}, (int)blocks);
}
