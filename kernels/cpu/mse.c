/* mse.c - mean squared error in one thread, so that the sum of the loss has a fixed order. */
#include "kernels/cpu/ops.h"

double cpu_mse(struct kctx *ctx, float *dout, const float *out, const float *target, int rows, int cols)
{
    const ptrdiff_t n = (ptrdiff_t)rows * cols;
    const float scale = (float)(2.0 / (double)n);
    double sum = 0;

    (void)ctx;
    for (ptrdiff_t i = 0; i < n; i++) {
        float d = out[i] - target[i];
        sum += (double)d * (double)d;
        if (dout)
            dout[i] = scale * d;
    }
    return sum / cols;
}
