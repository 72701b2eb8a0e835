/* histogram.h - a histogram of durations with the buckets of client-go's work queues: 10 ns, 100 ns ... 10 s.
 * Pure.
 *
 * Units:     milliseconds. A duration below 1 ms is given as 0 and falls into the first bucket.
 */
#ifndef TK_KUBE_HISTOGRAM_H
#define TK_KUBE_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 10 };

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS + 1]; /* not cumulative; the last one is for what exceeds every bound */
    uint64_t n;
    uint64_t sum_ms;
};

static inline void histogram_add(struct histogram *h, int64_t ms)
{
    int i = ms <= 0 ? 0 : 5; /* the sixth bound is a millisecond */

    for (int64_t bound = 1; i >= 5 && i < HISTOGRAM_BUCKETS && ms > bound; bound *= 10)
        i++;
    h->counts[i]++;
    h->n++;
    h->sum_ms += ms > 0 ? (uint64_t)ms : 0;
}

#endif
