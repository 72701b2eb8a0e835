/* classifier.cu - block of rows after block of rows: products, loss and gradient of them in place, the gradients' products.
 *
 * A row has a block of threads, which goes over it twice: for its largest and its sum together, and for the gradient. Rows
 * of logits begin QUEUED_LOGITS_ALIGN elements apart or a multiple of it.
 *
 * cuBLAS computes the classes that fill packs of 16 bytes. Of an odd number, such as GPT-2's 50257, it takes kernels without wide
 * loads, a quarter as fast on an H200. Kernels of this file compute the few classes behind the last pack, the tail.
 */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/loss.cuh"
#include "kernels/cuda/products.cuh"
#include "kernels/cuda/vector.cuh"

#include <float.h>

namespace
{

constexpr int HEAD_THREADS = 256;

/* What a thread, and then the block, knows of a row. */
struct row_peak {
    double sum; /* of e^(x - most) */
    float most;
    int at; /* the first that is so large */
};

struct higher_peak {
    __device__ row_peak operator()(row_peak a, row_peak b) const
    {
        const bool first = a.most > b.most || (a.most == b.most && a.at < b.at);
        const row_peak &high = first ? a : b;
        const row_peak &low = first ? b : a;
        return row_peak{high.sum + low.sum * (double)expf(low.most - high.most), high.most, high.at};
    }
};

template <class E> struct head {
    linear_shape s;
    int stride;
    int wide; /* classes in front of the tail */
    const int32_t *labels;
    const E *weight;
    float share;
    bool gradient;
};

/* A row's logits of the tail. */
template <class E> __device__ void tail_logits(const head<E> &h, E *x, const E *in)
{
    SHARED(float, sums, HEAD_THREADS / WARP);

    for (int k = h.wide; k < h.s.out; k++) {
        const E *w = h.weight + (int64_t)k * h.s.in;
        float sum = 0;
        for (int i = (int)threadIdx.x; i < h.s.in; i += HEAD_THREADS)
            sum = __fmaf_rn((float)in[i], (float)w[i], sum);
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            sums[threadIdx.x / WARP] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < HEAD_THREADS / WARP; i++)
                sum += sums[i];
            x[k] = (E)sum;
        }
        __syncthreads();
    }
}

/* The tail's part of the gradient of a row of inputs. */
template <class E> __device__ void tail_input_gradient(const head<E> &h, const E *gradient, E *din)
{
    for (int i = (int)threadIdx.x; i < h.s.in; i += HEAD_THREADS) {
        float sum = 0;
        for (int k = h.wide; k < h.s.out; k++)
            sum = __fmaf_rn((float)gradient[k], (float)h.weight[(int64_t)k * h.s.in + i], sum);
        din[i] = (E)sum;
    }
}

/* The gradient of a weight's row: the sum over rows of a logit's gradient times the row's inputs (columns.cuh). */
template <class Element> struct class_gradient {
    typedef Element E;
    static constexpr int N = 1;
    static constexpr int COLS = pack<E>::N;
    const E *gradient; /* of the class, row after row */
    int stride;
    const E *in;
    int cols;
    template <class S> __device__ void add(int row, int col, S *v) const
    {
        const S dy = (S)(float)gradient[(int64_t)row * stride];
        const pack<E> x = load_pack(in + (int64_t)row * cols + col);
        UNROLL
        for (int k = 0; k < COLS; k++)
            v[k] += dy * (S)(float)x.v[k];
    }
};

struct class_gradient_store {
    float *to;
    bool more;
    __device__ void put(int col, const double *sum) const
    {
        to[col] = (more ? to[col] : 0.0F) + (float)sum[0];
    }
};

template <class E> __device__ row_peak peak_of(const E *x, int classes)
{
    row_peak p = {0, -FLT_MAX, classes};
    float sum = 0;

    for (int first = (int)threadIdx.x * pack<E>::N; first < classes; first += HEAD_THREADS * pack<E>::N) {
        const pack<E> v = load_pack(x + first);
        for (int k = 0; k < pack<E>::N && first + k < classes; k++) {
            const float a = (float)v.v[k];
            if (a > p.most) {
                sum = sum * expf(p.most - a) + 1;
                p.most = a;
                p.at = first + k;
            } else {
                sum += expf(a - p.most); /* NaN stays */
            }
        }
    }
    p.sum = (double)sum;
    return p;
}

template <class E> __device__ void put_gradient(E *x, int classes, row_peak p, int label, float share)
{
    const float scale = (float)((double)share / p.sum);

    for (int first = (int)threadIdx.x * pack<E>::N; first < classes; first += HEAD_THREADS * pack<E>::N) {
        pack<E> v = load_pack(x + first);
        for (int k = 0; k < pack<E>::N && first + k < classes; k++)
            v.v[k] = (E)(expf((float)v.v[k] - p.most) * scale - (first + k == label ? share : 0.0F));
        store_pack(x + first, v); /* what is behind the last class nobody reads */
    }
}

/* in, din: of the first row. */
template <class E>
__global__ void classifier_rows(head<E> h, E *logits, loss_part *part, int first, const E *in, E *din)
{
    SHARED(row_peak, peak, HEAD_THREADS);
    const int row = first + (int)blockIdx.x;
    E *x = logits + (int64_t)blockIdx.x * h.stride;
    const int label = h.labels[row];
    const bool good = label >= 0 && label < h.s.out;

    tail_logits(h, x, in + (int64_t)blockIdx.x * h.s.in);
    const float mine = good ? (float)x[label] : 0.0F;
    const row_peak p = block_reduce<HEAD_THREADS>(peak, peak_of(x, h.s.out), higher_peak());
    if (threadIdx.x == 0)
        part[blockIdx.x] =
            good ? loss_part{log(p.sum) - ((double)mine - (double)p.most), p.at == label, NO_BAD_ROW}
                 : loss_part{NAN, 0, row};
    if (!h.gradient)
        return;
    put_gradient(x, h.s.out, p, good ? label : -1, h.share);
    if (h.wide == h.s.out)
        return;
    __syncthreads();
    tail_input_gradient(h, x, din + (int64_t)blockIdx.x * h.s.in);
}

/* Of the rows of `now`; with `more` it is added to what dweight holds. */
template <class E>
void head_weight_gradient(struct cuda *c, const head<E> &h, linear_shape now, float *dweight, bool more,
                          const E *gradient, const E *in)
{
    const bool packed = h.wide < h.s.out && rows_packed<E>(now.in, pack_aligned(in));

    for (int k = h.wide; packed && k < h.s.out; k++)
        columns_sum(c, now.rows, now.in, class_gradient<E>{gradient + k, h.stride, in, now.in},
                    class_gradient_store{dweight + (int64_t)k * now.in, more});
    now.out = packed ? h.wide : h.s.out;
    (void)weight_product<E>(c, &now, dweight, nullptr, more, gradient, h.stride, in);
}

template <class E>
void run_classifier(struct cuda *c, const struct linear_shape *s, struct queued_loss *result, float *mean,
                    void *din, float *dweight, const void *in, const void *weight, const int32_t *labels,
                    float share, bool add)
{
    const int stride = (int)ceil_div(s->out, QUEUED_LOGITS_ALIGN) * QUEUED_LOGITS_ALIGN;
    const int packs = s->out / pack<E>::N * pack<E>::N;
    const size_t row_bytes = (size_t)stride * sizeof(E);
    int64_t most = (int64_t)(c->scratch_bytes / row_bytes);
    const head<E> h = {
        *s, stride, packs ? packs : s->out, labels, (const E *)weight, share, dweight != nullptr};

    most = most < LOSS_PARTS_MAX ? most : LOSS_PARTS_MAX;
    most = most > 1 ? most : 1;
    E *logits = (E *)cuda_scratch(c, (size_t)(most < s->rows ? most : s->rows) * row_bytes);
    for (int64_t first = 0; first < s->rows; first += most) {
        const E *x = (const E *)in + first * s->in;
        E *dx = din ? (E *)din + first * s->in : nullptr;
        linear_shape now = *s;
        now.rows = (int)(s->rows - first < most ? s->rows - first : most);
        now.out = h.wide;
        output_product<E>(c, &now, logits, stride, x, h.weight, nullptr, false);
        LAUNCH(c, (unsigned)now.rows, HEAD_THREADS, classifier_rows<E>, h, logits, (loss_part *)c->parts,
               (int)first, x, dx);
        loss_sum(c, loss_target{result, 1, add || first > 0, loss_mean{mean, 1, share}}, now.rows);
        if (!dweight)
            continue;
        head_weight_gradient<E>(c, h, now, dweight, first > 0, logits, x);
        input_product<E>(c, &now, dx, h.wide < s->out, logits, stride, h.weight, nullptr);
    }
}

} // namespace

void cuda_queue_classifier(struct kctx *ctx, const struct linear_shape *s, struct queued_loss *result,
                           float *mean, void *din, float *dweight, const void *in, const void *weight,
                           const int32_t *labels, float share, bool add)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_classifier, c, s, result, mean, din, dweight, in, weight, labels, share, add);
}
