/* attention.cu - attention's passes on a GPU: which path they take, and what the gradients of both need first. */
#include "kernels/cuda/attention_plain.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/vector.cuh"

namespace
{

/* Lanes of a warp share a row of a head; other lanes of it have rows of their own. */
constexpr int DOT_LANES = 8;
constexpr int DOT_ROWS = WARP / DOT_LANES;

/* N: how many numbers a lane reads at once. */
template <class E, int N> __global__ void attention_dots(attention_job j, float *dot, const E *out)
{
    const attention_shape &s = j.s;
    const int all = j.n * s.time; /* what lies in CUDA_PARTS_BYTES */

    for (int first = (int)row_first() * DOT_ROWS; first < all; first += (int)row_stride() * DOT_ROWS) {
        const int i = first + lane() / DOT_LANES;
        float sum = 0;
        if (i < all) {
            const int number = j.first + i / s.time;
            const head_rows<const E> o = rows_of(s, out, number, OUTPUT);
            const int64_t row = i % s.time * o.row;
            const E *x = o.p + row;
            const E *y = rows_of(s, (const E *)j.dout, number, OUTPUT).p + row;
            for (int c = lane() % DOT_LANES * N; c < s.size; c += DOT_LANES * N) {
                const piece<E, N> a = load_piece<E, N>(x + c);
                const piece<E, N> b = load_piece<E, N>(y + c);
                for (int k = 0; k < N; k++)
                    sum = __fmaf_rn((float)a.v[k], (float)b.v[k], sum);
            }
        }
        sum = lanes_sum<DOT_LANES>(sum);
        if (i < all && lane() % DOT_LANES == 0)
            dot[i] = sum;
    }
}

/* As many heads at a time as leave room for their dots. */
template <class E> void run_backward(struct cuda *c, attention_job j, const void *out)
{
    float *dot = (float *)c->parts;
    const int heads = j.n;
    const int fit = (int)(CUDA_PARTS_BYTES / sizeof(float) / (size_t)j.s.time);

    if (fit < 1) {
        cuda_note(c, cudaErrorInvalidConfiguration, "attention over that many positions");
        return;
    }
    j.dot = dot;
    const bool fast = attention_fast(c->ctx.element, &j.s, j.qkv, j.dout);
    for (; j.first < heads; j.first += fit) {
        j.n = heads - j.first < fit ? heads - j.first : fit;
        const unsigned blocks = row_blocks((int)ceil_div((int64_t)j.n * j.s.time, DOT_ROWS));
        if (rows_packed<E>(j.s.size, pack_aligned(out) && pack_aligned(j.dout)))
            LAUNCH(c, blocks, ROW_THREADS, (attention_dots<E, pack<E>::N>), j, dot, (const E *)out);
        else
            LAUNCH(c, blocks, ROW_THREADS, (attention_dots<E, 1>), j, dot, (const E *)out);
        if (fast)
            attention_fast_backward(c, j);
        else
            plain_backward<E>(c, j);
    }
}

attention_job job_of(const attention_shape *s, void *to, const void *qkv, const void *dout, const float *lse)
{
    return attention_job{*s, to, qkv, dout, NULL, lse, 1.0F / sqrtf((float)s->size), 0, s->batch * s->heads};
}

} // namespace

bool attention_fast(enum element element, const struct attention_shape *s, const void *qkv, const void *dout)
{
    return element == ELEMENT_BF16 && s->size == ATTENTION_FAST_SIZE && pack_aligned(qkv) &&
           pack_aligned(dout);
}

void cuda_attention_forward(struct kctx *ctx, const struct attention_shape *s, void *out, float *lse,
                            const void *qkv)
{
    struct cuda *c = cuda_of(ctx);
    const attention_job j = job_of(s, out, qkv, NULL, lse);

    if (attention_fast(ctx->element, s, qkv, NULL))
        attention_fast_forward(c, j, lse);
    else
        ELEMENT_CALL(c, plain_forward, c, j, lse);
}

void cuda_attention_backward(struct kctx *ctx, const struct attention_shape *s, void *dqkv, const void *dout,
                             const void *out, const float *lse, const void *qkv)
{
    struct cuda *c = cuda_of(ctx);

    ELEMENT_CALL(c, run_backward, c, job_of(s, dqkv, qkv, dout, lse), out);
}
