/* latency.h - histogram of the times that users waited, from 0.1 s to an hour. Pure.
 *
 * Units:     milliseconds.
 */
#ifndef TK_OPERATOR_LATENCY_H
#define TK_OPERATOR_LATENCY_H

#include <stddef.h>
#include <stdint.h>

enum { LATENCY_BUCKETS = 15 };

/* Upper bounds in seconds, as printed in /metrics; the last one is "+Inf". */
extern const char *const LATENCY_BOUNDS[LATENCY_BUCKETS];

struct latency {
    uint64_t counts[LATENCY_BUCKETS]; /* not cumulative */
    uint64_t n, sum_ms;
};

/* A negative time, from two clocks that differ, goes into the first bucket and adds nothing to the sum. */
void latency_add(struct latency *l, int64_t ms);

#endif
