/* classifier.cu - block of rows after block of rows: products, loss and gradient of them in place, the gradients' products.
 *
 * A row has a block of threads, which goes over it twice: for its largest and its sum together, and for the gradient. Rows
 * of products lie LOGITS_ALIGN elements apart or a multiple of it, whatever the number of classes: cuBLAS reads them again,
 * and its quick algorithms want 16 bytes of alignment.
 */
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

struct head {
    linear_shape s;
    int stride;
    const int32_t *labels;
    float share;
    bool gradient;
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

template <class E> __global__ void classifier_rows(head h, E *logits, loss_part *part, int first)
{
    SHARED(row_peak, peak, HEAD_THREADS);
    const int row = first + (int)blockIdx.x;
    E *x = logits + (int64_t)blockIdx.x * h.stride;
    const int label = h.labels[row];
    const bool good = label >= 0 && label < h.s.out;
    const float mine = good ? (float)x[label] : 0.0F;

    const row_peak p = block_reduce<HEAD_THREADS>(peak, peak_of(x, h.s.out), higher_peak());
    if (threadIdx.x == 0)
        part[blockIdx.x] =
            good ? loss_part{log(p.sum) - ((double)mine - (double)p.most), p.at == label, NO_BAD_ROW}
                 : loss_part{NAN, 0, row};
    if (h.gradient)
        put_gradient(x, h.s.out, p, good ? label : -1, h.share);
}

template <class E>
void run_classifier(struct cuda *c, const struct linear_shape *s, struct queued_loss *result, float *mean,
                    void *din, float *dweight, const void *in, const void *weight, const int32_t *labels,
                    float share, bool add)
{
    const int stride = (int)ceil_div(s->out, QUEUED_LOGITS_ALIGN) * QUEUED_LOGITS_ALIGN;
    const size_t row_bytes = (size_t)stride * sizeof(E);
    int64_t most = (int64_t)(c->scratch_bytes / row_bytes);
    const head h = {*s, stride, labels, share, dweight != nullptr};

    most = most < LOSS_PARTS_MAX ? most : LOSS_PARTS_MAX;
    most = most > 1 ? most : 1;
    E *logits = (E *)cuda_scratch(c, (size_t)(most < s->rows ? most : s->rows) * row_bytes);
    for (int64_t first = 0; first < s->rows; first += most) {
        const E *x = (const E *)in + first * s->in;
        linear_shape now = *s;
        now.rows = (int)(s->rows - first < most ? s->rows - first : most);
        output_product<E>(c, &now, logits, stride, x, (const E *)weight, nullptr, false);
        LAUNCH(c, (unsigned)now.rows, HEAD_THREADS, classifier_rows<E>, h, logits, (loss_part *)c->parts,
               (int)first);
        loss_sum(c, loss_target{result, 1, add || first > 0, loss_mean{mean, 1, share}}, now.rows);
        if (!dweight)
            continue;
        (void)weight_product<E>(c, &now, dweight, nullptr, first > 0, logits, stride, x);
        input_product<E>(c, &now, (E *)din + first * s->in, logits, stride, (const E *)weight, nullptr);
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

int cuda_classifier(struct kctx *ctx, const struct linear_shape *s, struct cross_entropy_result *result,
                    void *din, float *dweight, const void *in, const void *weight, const int32_t *labels,
                    float share, struct err *err)
{
    struct cuda *c = cuda_of(ctx);

    cuda_queue_classifier(ctx, s, c->loss, nullptr, din, dweight, in, weight, labels, share, false);
    return loss_get(c, result, "classifier", labels, s->out, err);
}
