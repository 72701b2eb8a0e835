/* latency.c - histograms of seconds, with the buckets of users' waits. */
#include "operator/latency.h"

const char *const LATENCY_BOUNDS[LATENCY_BUCKETS] = {"0.1", "0.25", "0.5", "1",   "2.5",  "5",    "10",  "30",
                                                     "60",  "120",  "300", "600", "1800", "3600", "+Inf"};

void latency_add(struct latency *l, int64_t ms)
{
    static const int64_t BOUNDS_MS[LATENCY_BUCKETS - 1] = {
        100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000};
    size_t i = 0;

    while (i < LATENCY_BUCKETS - 1 && ms > BOUNDS_MS[i])
        i++;
    l->counts[i]++;
    l->n++;
    l->sum_ms += ms > 0 ? (uint64_t)ms : 0;
}
