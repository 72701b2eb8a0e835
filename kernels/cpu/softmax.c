/* softmax.c - softmax row by row; rows are short here, so libm's expf is fast enough. */
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"

#include <math.h>

struct job {
    float *to;
    const float *a, *b;
    int classes;
};

static void forward_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *in = j->a + r * j->classes;
        float *out = j->to + r * j->classes;
        float top = in[0];
        for (int c = 1; c < j->classes; c++)
            top = in[c] > top ? in[c] : top;
        double sum = 0;
        for (int c = 0; c < j->classes; c++) {
            out[c] = expf(in[c] - top);
            sum += (double)out[c];
        }
        float scale = (float)(1 / sum);
        for (int c = 0; c < j->classes; c++)
            out[c] *= scale;
    }
}

void cpu_softmax_forward(struct kctx *ctx, float *out, const float *in, int rows, int classes)
{
    kctx_run(ctx, rows, forward_rows, &(struct job){.to = out, .a = in, .classes = classes});
}

static void backward_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *dout = j->a + r * j->classes;
        const float *out = j->b + r * j->classes;
        float *din = j->to + r * j->classes;
        double sum = 0;
        for (int c = 0; c < j->classes; c++)
            sum += (double)out[c] * (double)dout[c];
        for (int c = 0; c < j->classes; c++)
            din[c] = out[c] * (dout[c] - (float)sum);
    }
}

void cpu_softmax_backward(struct kctx *ctx, float *din, const float *dout, const float *out, int rows,
                          int classes)
{
    kctx_run(ctx, rows, backward_rows, &(struct job){.to = din, .a = dout, .b = out, .classes = classes});
}
