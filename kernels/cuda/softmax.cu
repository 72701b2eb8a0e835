/* softmax.cu - softmax on a GPU, a warp per row. */
#include "kernels/cuda/rows.cuh"

namespace
{

__global__ void softmax_rows(float *out, const float *in, int rows, int classes)
{
    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        const float *x = in + r * classes;
        float *y = out + r * classes;
        float top = warp_largest(x, classes);
        double sum = 0;
        for (int c = lane(); c < classes; c += WARP)
            sum += (double)expf(x[c] - top);
        float scale = (float)(1 / warp_sum(sum));
        for (int c = lane(); c < classes; c += WARP)
            y[c] = expf(x[c] - top) * scale;
    }
}

__global__ void softmax_gradient(float *din, const float *dout, const float *out, int rows, int classes)
{
    for (int64_t r = row_first(); r < rows; r += row_stride()) {
        const float *dy = dout + r * classes;
        const float *y = out + r * classes;
        double sum = 0;
        for (int c = lane(); c < classes; c += WARP)
            sum += (double)y[c] * (double)dy[c];
        sum = warp_sum(sum);
        for (int c = lane(); c < classes; c += WARP)
            din[r * classes + c] = y[c] * (dy[c] - (float)sum);
    }
}

} // namespace

void cuda_softmax_forward(struct kctx *ctx, float *out, const float *in, int rows, int classes)
{
    if (rows)
        LAUNCH(cuda_of(ctx), row_blocks(rows), ROW_THREADS, softmax_rows, out, in, rows, classes);
}

void cuda_softmax_backward(struct kctx *ctx, float *din, const float *dout, const float *out, int rows,
                           int classes)
{
    if (rows)
        LAUNCH(cuda_of(ctx), row_blocks(rows), ROW_THREADS, softmax_gradient, din, dout, out, rows, classes);
}
