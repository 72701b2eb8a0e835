/* add.cu - element-wise sum on a GPU, 16 bytes per thread. */
#include "kernels/cuda/vector.cuh"

namespace
{

template <class E> __global__ void add_elements(E *out, const E *a, const E *b, pack_walk walk)
{
    constexpr int N = pack<E>::N;

    for (int64_t i = each_first(); i < walk.items; i += each_stride()) {
        if (i >= walk.packs) {
            const int64_t at = walk.packs * (N - 1) + i;
            out[at] = (E)((float)a[at] + (float)b[at]);
            continue;
        }
        const pack<E> x = load_pack(a + i * N);
        const pack<E> y = load_pack(b + i * N);
        pack<E> z;
        for (int k = 0; k < N; k++)
            z.v[k] = (E)((float)x.v[k] + (float)y.v[k]);
        store_pack(out + i * N, z);
    }
}

template <class E> void run_add(struct cuda *c, void *out, const void *a, const void *b, size_t n)
{
    const pack_walk walk =
        pack_walk_of<E>((int64_t)n, pack_aligned(out) && pack_aligned(a) && pack_aligned(b));

    if (n)
        LAUNCH(c, blocks_for(walk.items, EACH_THREADS), EACH_THREADS, add_elements<E>, (E *)out, (const E *)a,
               (const E *)b, walk);
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
