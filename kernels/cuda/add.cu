/* add.cu - element-wise sum on a GPU, 16 bytes per thread. */
#include "kernels/cuda/vector.cuh"

namespace
{

template <class E> void run_add(struct cuda *c, void *out, const void *a, const void *b, size_t n)
{
    map(c, n, plus(), (E *)out, (const E *)a, (const E *)b);
}

} // namespace

void cuda_add(struct kctx *ctx, void *out, const void *a, const void *b, size_t n)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_add, c, out, a, b, n);
}

void cuda_queue_accumulate(struct kctx *ctx, float *sum, const float *more, size_t n)
{
    run_add<float>(cuda_of(ctx), sum, sum, more, n);
}
