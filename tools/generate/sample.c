/* sample.c - sample a class from logits: temperature, top-k, then a walk along the cumulative sum. */
#include "tools/generate/sample.h"

#include <math.h>

static int likeliest(const float *logits, int classes)
{
    int best = 0;

    for (int i = 1; i < classes; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static void sift(float *heap, int n, int i)
{
    float v = heap[i];

    for (int child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= v)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = v;
}

/* The k-th largest: the least of a heap of the k largest. */
static float threshold(const float *logits, int classes, int k, float *heap)
{
    for (int i = 0; i < k; i++)
        heap[i] = logits[i];
    for (int i = k / 2 - 1; i >= 0; i--)
        sift(heap, k, i);
    for (int i = k; i < classes; i++) {
        if (logits[i] <= heap[0])
            continue;
        heap[0] = logits[i];
        sift(heap, k, 0);
    }
    return heap[0];
}

int sample(const struct sample_options *o, const float *logits, int classes, float *heap, struct torch_rng *g)
{
    int best = likeliest(logits, classes);
    double sum = 0;

    if (o->temperature <= 0)
        return best;
    float least = o->top_k && o->top_k < classes ? threshold(logits, classes, o->top_k, heap) : -INFINITY;
    for (int i = 0; i < classes; i++)
        if (logits[i] >= least)
            sum += exp(((double)logits[i] - (double)logits[best]) / o->temperature);
    double left = (double)(torch_rng_u64(g) >> 11) * 0x1p-53 * sum;
    int last = best;
    for (int i = 0; i < classes; i++) {
        if (!(logits[i] >= least))
            continue;
        last = i;
        left -= exp(((double)logits[i] - (double)logits[best]) / o->temperature);
        if (left < 0)
            break;
    }
    return last;
}
