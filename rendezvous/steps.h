/* steps.h - how long ranks take for a step of training, of one rank, of a node or of a whole run, and how much slower than
 * the median the slowest is. Pure.
 *
 * All ranks of a run make a step in the same time, because they wait for each other. So a rank's own time is that outside
 * of collective calls. The least time in calls is what the exchange takes when a rank waits for nobody; it belongs to
 * everybody's step.
 *
 * Units:     microseconds per step. Numbers are at most STEPS_US_MAX, ranks STEPS_RANKS_MAX.
 */
#ifndef TK_RENDEZVOUS_STEPS_H
#define TK_RENDEZVOUS_STEPS_H

#include <stdint.h>

#define STEPS_US_MAX INT64_C(1000000000000)
enum { STEPS_RANKS_MAX = 1 << 20 };

struct steps {
    int64_t window;    /* grows with each window over which these were measured; 0: none yet, the rest is 0 */
    int64_t ranks;     /* at least 1 */
    int64_t median_us; /* own time: the lower median over ranks, so of two ranks the faster one's */
    int64_t slow_us;   /* own time of the slowest, */
    int64_t slow_rank; /* and which it is */
    int64_t wait_us;   /* the least time in calls */
};

/* Of n parts (1 or more), each with a window, the whole; *ret's window is left. The median is exact where each part has one
 * rank, else that of the parts' medians, each counted as often as it has ranks. Sorts the parts. */
void steps_merge(struct steps *part, int n, struct steps *ret);

/* The slowest rank's step to the median one; 1 where that takes no time. */
double steps_ratio(const struct steps *s);

#endif
