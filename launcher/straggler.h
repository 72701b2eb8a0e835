/* straggler.h - measure the ranks' steps of training, and judge which rank takes longer for them than the others. Pure:
 * counts and times are arguments.
 *
 * A window is closed when each rank of the node has made STRAGGLER_STEPS steps more. A rank is a straggler while it was the
 * slowest in STRAGGLER_MOST of the last STRAGGLER_WINDOWS windows, and the slowest's step (rendezvous/steps.h) was longer than
 * STRAGGLER_RATIO times the median one in most of them. So a pause, however long, is one window's affair, and ranks that are
 * slow by chance are not always the same.
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

enum { STRAGGLER_STEPS = 10, STRAGGLER_WINDOWS = 10, STRAGGLER_MOST = 9, STRAGGLER_TELL_MS = 3600 * 1000 };
#define STRAGGLER_RATIO 1.3

/* What a rank has counted in this round. Any numbers: others can write them. */
struct straggler_count {
    uint64_t step, own_us, wait_us;
};

struct straggler {
    int n;                        /* ranks of this node */
    int64_t first_rank;           /* the first one's number */
    struct straggler_count *now;  /* [n] at the last look */
    struct straggler_count *from; /* [n] at the begin of the present window */
    struct steps *part;           /* [n] */
    struct steps steps;           /* of this node, in the last window */
    int64_t rank;                 /* the straggler; -1: none */
    double ratio;    /* of the slowest one's step to the median one, the median of the last windows */
    int64_t tell_ms; /* not to be told again before */
    int64_t judged;  /* the last window of the run that was judged */
    int windows;     /* judged in this round */
    struct {
        int64_t rank;
        double ratio;
    } last[STRAGGLER_WINDOWS]; /* a ring: the slowest of each */
};

void straggler_init(struct straggler *s, int n, struct arena *a);

/* A round begins: all counts are 0. When something was last told stays. */
void straggler_begin(struct straggler *s, int64_t first_rank);

/* Look at the ranks' slots. True: a window of this node is closed, and s->steps are its times. */
bool straggler_measure(struct straggler *s, const struct rank_slot *slots);

/* Of the whole run, after each of its windows; one that was judged already is not judged again. */
void straggler_judge(struct straggler *s, const struct steps *run);

/* Is there one that has to be told now? Once in STRAGGLER_TELL_MS. */
bool straggler_due(struct straggler *s, int64_t now_ms);

#endif
