/* flatten.cu - transpose images between this project's layout and PyTorch's, a thread per element. */
#include "kernels/cuda/grid.h"

namespace
{

/* out (B,N,M) = in (B,M,N) with the last two changed round. */
__global__ void flatten_swap(float *out, const float *in, int m, int n, int64_t all)
{
    for (int64_t i = each_first(); i < all; i += each_stride()) {
        int64_t sample = i / m / n;
        int at = (int)(i - sample * m * n);
        out[i] = in[sample * m * n + (int64_t)(at % m) * n + at / m];
    }
}

void run(struct cuda *c, const struct flatten_shape *s, float *out, const float *in, int m, int n)
{
    int64_t all = (int64_t)s->batch * m * n;
    LAUNCH(c, blocks_for(all, EACH_THREADS), EACH_THREADS, flatten_swap, out, in, m, n, all);
}

} // namespace

void cuda_flatten_forward(struct kctx *ctx, const struct flatten_shape *s, float *out, const float *in)
{
    run(cuda_of(ctx), s, out, in, s->h * s->w, s->c);
}

void cuda_flatten_backward(struct kctx *ctx, const struct flatten_shape *s, float *din, const float *dout)
{
    run(cuda_of(ctx), s, din, dout, s->c, s->h * s->w);
}
