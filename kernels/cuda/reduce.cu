/* reduce.cu - sums of squares, a block of threads for each block of elements; and scaling. */
#include "kernels/cuda/vector.cuh"

namespace
{

constexpr int REDUCE_THREADS = 256;

__global__ void squares(double *sums, const float *x, int64_t n)
{
    SHARED(double, mine, REDUCE_THREADS);
    const int t = (int)threadIdx.x;
    const int64_t first = (int64_t)blockIdx.x * REDUCE_BLOCK;
    const int64_t end = n - first < REDUCE_BLOCK ? n : first + REDUCE_BLOCK;
    double sum = 0;

    for (int64_t i = first + t; i < end; i += REDUCE_THREADS)
        sum += (double)x[i] * (double)x[i];
    mine[t] = sum;
    __syncthreads();
    for (int half = REDUCE_THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            mine[t] += mine[t + half];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = mine[0];
}

__global__ void scale_of(float *x, float by, pack_walk walk)
{
    constexpr int N = pack<float>::N;

    for (int64_t i = each_first(); i < walk.items; i += each_stride()) {
        if (i >= walk.packs) {
            x[walk.packs * (N - 1) + i] *= by;
            continue;
        }
        pack<float> v = load_pack(x + i * N);
        for (int k = 0; k < N; k++)
            v.v[k] *= by;
        store_pack(x + i * N, v);
    }
}

} // namespace

void cuda_reduce_squares(struct kctx *ctx, double *sums, const float *x, size_t n)
{
    if (n)
        LAUNCH(cuda_of(ctx), (unsigned)reduce_blocks(n), REDUCE_THREADS, squares, sums, x, (int64_t)n);
}

void cuda_reduce_scale(struct kctx *ctx, float *x, float by, size_t n)
{
    const pack_walk walk = pack_walk_of<float>((int64_t)n, pack_aligned(x));

    if (n)
        LAUNCH(cuda_of(ctx), blocks_for(walk.items, EACH_THREADS), EACH_THREADS, scale_of, x, by, walk);
}
