/* reduce.cu - sums of squares, a block of threads for each block of elements, and one for all of those. */
#include "kernels/cuda/vector.cuh"

namespace
{

constexpr int REDUCE_THREADS = 256;

__global__ void reduce_squares_part(double *sums, const float *x, int64_t n)
{
    SHARED(double, mine, REDUCE_THREADS);
    const int64_t first = (int64_t)blockIdx.x * REDUCE_BLOCK;
    const int64_t end = n - first < REDUCE_BLOCK ? n : first + REDUCE_BLOCK;
    double sum = 0;

    for (int64_t i = first + (int)threadIdx.x; i < end; i += REDUCE_THREADS)
        sum += (double)x[i] * (double)x[i];
    sum = block_reduce<REDUCE_THREADS>(mine, sum, plus());
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

/* One block. */
__global__ void reduce_squares_sum(struct queued_norm *norm, const double *sums, int64_t n)
{
    SHARED(double, mine, REDUCE_THREADS);
    double sum = 0;

    for (int64_t i = (int)threadIdx.x; i < n; i += REDUCE_THREADS)
        sum += sums[i];
    sum = block_reduce<REDUCE_THREADS>(mine, sum, plus());
    if (threadIdx.x == 0)
        norm->squares = sum;
}

__global__ void reduce_bound(struct queued_norm *norm, double bound)
{
    const double is = sqrt(norm->squares);
    const float scale = (float)(bound / (is + 1e-6));

    norm->norm = (float)is;
    norm->scale = scale < 1 ? scale : 1.0F; /* what is not a number bounds nothing, as on the CPU */
}

} // namespace

void cuda_queue_squares(struct kctx *ctx, struct queued_norm *norm, const float *grad, size_t n)
{
    struct cuda *c = cuda_of(ctx);

    if (reduce_blocks(n) > CUDA_PARTS_BYTES / sizeof(double)) {
        cuda_note(c, cudaErrorInvalidConfiguration, "the norm of that many gradients");
        return;
    }
    if (n)
        LAUNCH(c, (unsigned)reduce_blocks(n), REDUCE_THREADS, reduce_squares_part, (double *)c->parts, grad,
               (int64_t)n);
    LAUNCH(c, 1, REDUCE_THREADS, reduce_squares_sum, norm, (const double *)c->parts,
           (int64_t)reduce_blocks(n));
}

void cuda_queue_bound(struct kctx *ctx, struct queued_norm *norm, double bound)
{
    LAUNCH(cuda_of(ctx), 1, 1, reduce_bound, norm, bound);
}
