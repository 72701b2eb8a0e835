/* linear.cu - the three products, by cuBLAS or by our own tiles.
 *
 * Row-major (R,I) is cuBLAS's (I,R). So out^T (O,R) = weight (O,I) in^T, where weight and in lie there as (I,O) and (I,R).
 */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/tile.cuh"

namespace
{

struct store_out {
    float *out;
    const float *bias;
    int cols;
    bool relu;
    __device__ void put(int row, int col, int, float v) const
    {
        if (bias)
            v += bias[col];
        out[(int64_t)row * cols + col] = relu && v < 0 ? 0.0F : v; /* NaN stays */
    }
};

struct store_plain {
    float *to;
    int cols;
    __device__ void put(int row, int col, int, float v) const
    {
        to[(int64_t)row * cols + col] = v;
    }
};

__global__ void mask(float *to, const float *dout, const float *out, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride())
        to[i] = out[i] > 0 ? dout[i] : 0.0F;
}

void weight_gradient(struct cuda *c, const struct linear_shape *s, float *dweight, const float *dy,
                     const float *in)
{
    product p = {};
    p.m = s->in, p.n = s->out, p.k = s->rows;
    p.a = in, p.lda = s->in;
    p.b = dy, p.ldb = s->out, p.b_transposed = true;
    p.c = dweight;
    if (matmul_run(c, &p))
        return;
    tile_launch(c, s->out, s->in, s->rows, 1, tile_matrix<false>{dy, 1, s->out},
                tile_matrix<false>{in, 1, s->in}, store_plain{dweight, s->in});
}

void input_gradient(struct cuda *c, const struct linear_shape *s, float *din, const float *dy,
                    const float *weight)
{
    product p = {};
    p.m = s->in, p.n = s->rows, p.k = s->out;
    p.a = weight, p.lda = s->in;
    p.b = dy, p.ldb = s->out;
    p.c = din;
    if (matmul_run(c, &p))
        return;
    tile_launch(c, s->rows, s->in, s->out, 1, tile_matrix<true>{dy, s->out, 1},
                tile_matrix<false>{weight, 1, s->in}, store_plain{din, s->in});
}

} // namespace

void cuda_linear_forward(struct kctx *ctx, const struct linear_shape *s, float *out, const float *in,
                         const float *weight, const float *bias, bool relu)
{
    struct cuda *c = cuda_of(ctx);
    product p = {};
    p.m = s->out, p.n = s->rows, p.k = s->in;
    p.a = weight, p.lda = s->in, p.a_transposed = true;
    p.b = in, p.ldb = s->in;
    p.c = out;
    p.bias = bias, p.relu = relu;
    if (matmul_run(c, &p))
        return;
    tile_launch(c, s->rows, s->out, s->in, 1, tile_matrix<true>{in, s->in, 1},
                tile_matrix<true>{weight, s->in, 1}, store_out{out, bias, s->out, relu});
}

void cuda_linear_backward(struct kctx *ctx, const struct linear_shape *s, float *din, float *dweight,
                          float *dbias, const float *dout, const float *out, const float *in,
                          const float *weight)
{
    struct cuda *c = cuda_of(ctx);
    const int64_t n = (int64_t)s->rows * s->out;
    const float *dy = dout;

    if (out) {
        float *own = (float *)cuda_scratch(c, (size_t)n * sizeof(float)); /* linear_workspace_bytes has it */
        LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, mask, own, dout, out, n);
        dy = own;
    }
    if (dbias)
        columns_sum(c, s->rows, s->out, masked_gradient{dy, nullptr, s->out}, store_column{dbias});
    weight_gradient(c, s, dweight, dy, in);
    if (din)
        input_gradient(c, s, din, dy, weight);
}
