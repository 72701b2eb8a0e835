/* latency.h - how often users waited how long: 0.1 s to an hour. Pure.
 *
 * Units: milliseconds in.
 */
#ifndef TK_OPERATOR_LATENCY_H
#define TK_OPERATOR_LATENCY_H

#include <stddef.h>
#include <stdint.h>

enum { LATENCY_BUCKETS = 15 };

/* The bounds in seconds, as /metrics shows them; the last one is "+Inf". */
extern const char *const LATENCY_BOUNDS[LATENCY_BUCKETS];

struct latency {
    uint64_t counts[LATENCY_BUCKETS]; /* not cumulative */
    uint64_t n, sum_ms;
};

/* A negative time, of two clocks that differ, counts as none. */
void latency_add(struct latency *l, int64_t ms);

#endif
