/* attention.cu - attention's passes on a GPU: which path they take, and what the gradients of both need first. */
#include "kernels/cuda/attention_plain.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/vector.cuh"

namespace
{

template <class E> __global__ void attention_dots(attention_job j, float *dot, const E *out)
{
    const attention_shape &s = j.s;

    for (int64_t i = row_first(); i < (int64_t)j.n * s.time; i += row_stride()) {
        const int number = j.first + (int)(i / s.time);
        const int64_t t = i % s.time;
        const head_rows<const E> o = rows_of(s, out, number, OUTPUT);
        const head_rows<const E> d = rows_of(s, (const E *)j.dout, number, OUTPUT);
        float sum = 0;
        for (int c = lane(); c < s.size; c += WARP)
            sum = __fmaf_rn((float)(o.p[t * o.row + c]), (float)(d.p[t * d.row + c]), sum);
        sum = warp_sum(sum);
        if (lane() == 0)
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
        LAUNCH(c, row_blocks(j.n * j.s.time), ROW_THREADS, attention_dots<E>, j, dot, (const E *)out);
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
