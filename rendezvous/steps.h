/* steps.h - step times of a rank, a node or a run, and how much slower the slowest rank is than the median.
 * The launcher measures them (launcher/straggler.h), quorum_steps merges them. Pure.
 *
 * All ranks of a run take the same time per step, because they wait for each other. So a rank's own time is
 * the time outside of collective calls. The shortest time in calls over all ranks is the communication
 * itself, without waiting; it is part of every rank's step.
 *
 * Units:     microseconds per step. Values are at most STEPS_US_MAX, ranks at most STEPS_RANKS_MAX. */
#ifndef TK_RENDEZVOUS_STEPS_H
#define TK_RENDEZVOUS_STEPS_H

#include <stdint.h>

#define STEPS_US_MAX INT64_C(1000000000000)
enum { STEPS_RANKS_MAX = 1 << 20 };

struct steps {
    int64_t window;    /* number of the measurement window, 1, 2, ...; 0: none yet, and all fields are 0 */
    int64_t ranks;     /* at least 1 */
    int64_t median_us; /* own time: the lower median over ranks; of two ranks the faster one's */
    int64_t slow_us;   /* own time of the slowest rank */
    int64_t slow_rank; /* its number */
    int64_t wait_us;   /* the shortest time in calls */
};

/* Merge n >= 1 parts, each with window > 0, into *ret; ret->window is unchanged. The median is exact if each
 * part has one rank; else it is the median of the parts' medians, weighted by their ranks. Sorts the
 * parts. */
void steps_merge(struct steps *part, int n, struct steps *ret);

/* The slowest rank's step time divided by the median one; 1 if the median is 0. */
double steps_ratio(const struct steps *s);

#endif
