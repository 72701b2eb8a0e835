/* straggler.h - measure the ranks' training steps, and find a rank that is slower than the others. agent.c
 * calls it. Pure: counts and times are arguments.
 *
 * A window ends when each rank of the node has made STRAGGLER_STEPS more steps. A rank is a straggler while
 * it was the slowest in STRAGGLER_MOST of the last STRAGGLER_WINDOWS windows, and the median ratio of the
 * slowest step to the median step (rendezvous/steps.h) in these windows is above STRAGGLER_RATIO. So one long
 * pause affects one window only, and random slowness does not always affect the same rank.
 *
 * Ownership: memory is the arena's.
 * Units:     milliseconds of the monotonic clock; microseconds of work.
 */
#ifndef TK_LAUNCHER_STRAGGLER_H
#define TK_LAUNCHER_STRAGGLER_H

#include "common/arena.h"
#include "host/rank_state.h"
#include "rendezvous/steps.h"

#include <stdbool.h>

enum { STRAGGLER_STEPS = 10, STRAGGLER_WINDOWS = 10, STRAGGLER_MOST = 9, STRAGGLER_REPORT_MS = 3600 * 1000 };
#define STRAGGLER_RATIO 1.3

/* A rank's counters in this round. Any values are possible, since every process of the node can write
 * them. */
struct straggler_count {
    uint64_t step, own_us, wait_us;
};

struct straggler {
    int n;                        /* ranks of this node */
    int64_t first_rank;           /* the first one's number */
    struct straggler_count *now;  /* [n] at the last reading */
    struct straggler_count *from; /* [n] at the begin of the current window */
    struct steps *part;           /* [n] scratch: one per rank */
    struct steps steps;           /* of this node, in the last window */
    int64_t rank;                 /* the straggler; -1: none */
    double ratio;                 /* median over the last windows of slowest step / median step */
    int64_t report_ms;            /* do not report again before this time */
    int64_t judged;               /* the last window of the run that straggler_judge has used */
    int windows;                  /* windows used in this round */
    struct {
        int64_t rank;
        double ratio;
    } last[STRAGGLER_WINDOWS]; /* a ring buffer: the slowest rank of each window */
};

void straggler_init(struct straggler *s, int n, struct arena *a);

/* Begin a round: reset all counters, but keep report_ms. */
void straggler_begin(struct straggler *s, int64_t first_rank);

/* Read the ranks' slots. True: a window of this node has ended, and s->steps has its times. */
bool straggler_measure(struct straggler *s, const struct rank_slot *slots);

/* Use a window of the whole run. A window that was used before has no effect. */
void straggler_judge(struct straggler *s, const struct steps *run);

/* Whether to report a straggler now, at most once per STRAGGLER_REPORT_MS. */
bool straggler_due(struct straggler *s, int64_t now_ms);

#endif
