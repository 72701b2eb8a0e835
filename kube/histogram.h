/* histogram.h - a histogram of durations, with the bounds that its owner chooses. Pure.
 *
 * Units:     milliseconds.
 */
#ifndef TK_KUBE_HISTOGRAM_H
#define TK_KUBE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS_MAX = 15 };

/* In ascending order, HISTOGRAM_BUCKETS_MAX at most; the last one is HISTOGRAM_INF. */
struct histogram_bound {
    int64_t ms;       /* a duration of at most this */
    const char *text; /* the same in seconds, as /metrics shows it */
};
#define HISTOGRAM_INF                                                                                        \
    {                                                                                                        \
        INT64_MAX, "+Inf"                                                                                    \
    }

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS_MAX]; /* by bound, not cumulative */
    uint64_t n, sum_ms;
};

/* A negative duration, from two clocks that differ, falls into the first bucket and adds nothing to the sum. */
static inline void histogram_add(struct histogram *h, const struct histogram_bound *bounds, int64_t ms)
{
    size_t i = 0;

    while (ms > bounds[i].ms)
        i++;
    h->counts[i]++;
    h->n++;
    h->sum_ms += ms > 0 ? (uint64_t)ms : 0;
}

#endif
