/* progress.h - how far a training is, from the lines that its rank 0 prints or from the file that it keeps: recognise
 * observations, and make of them steps, percent, time left. Pure: times are arguments.
 *
 * An observation is what one line (recognise.h) or one state of the file (progress_file.h) says; a field that it does not
 * say is absent. struct progress is what is known so far of one round of ranks.
 *
 * Ownership: everything is in the structs; no pointers.
 * Units:     steps and epochs are counts; loss as printed; samples per second; _ms are milliseconds of the monotonic
 *            clock, wall_ms of Unix time.
 * Errors:    none: a number that is no number, or out of bounds (below), counts as absent.
 */
#ifndef TK_LAUNCHER_PROGRESS_PROGRESS_H
#define TK_LAUNCHER_PROGRESS_PROGRESS_H

#include "launcher/progress/position.h"

#include <stdbool.h>
#include <stdint.h>

/* Absent: counts are -1, numbers are NAN. Counts are 0 to PROGRESS_COUNT_MAX. */
#define PROGRESS_COUNT_MAX INT64_C(1000000000000000)

/* What one line says. Numbers are as printed: the first epoch may be 0. */
struct progress_seen {
    int64_t step, total_steps;       /* of the run, or of the epoch under way */
    bool bar;                        /* ... of a bar */
    bool download;                   /* of such a bar, after all: nothing but total_steps counts */
    int64_t epoch, total_epochs;     /* the epoch under way */
    int64_t epoch_step, epoch_steps; /* in the epoch */
    double epoch_fraction;           /* of the epoch that is done, 0..1, where there are no such steps */
    double loss;
    double samples_per_second;
    double percent; /* of the run */
};

/* All fields absent. */
struct progress_seen progress_nothing(void);

struct progress {
    int64_t step, total_steps, epoch, total_epochs;
    double percent; /* 0..100 */
    double loss, samples_per_second;
    int64_t eta_ms;  /* time left; -1: not known, or the last two estimates did not agree yet */
    int64_t wall_ms; /* of the last observation; 0: none yet */
    bool from_file;  /* lines count no more: the program keeps the file */
    /* Internal: where it is, what that rests on, and the estimate of the time left. */
    struct position position;
    enum position_source source;
    int falls;
    bool estimated; /* at least once since the measuring began, at since_ms */
    int64_t since_ms, last_ms;
    double last_percent, percent_per_ms, left_ms;
};

void progress_init(struct progress *p);

/* Take what was seen. A restart of the ranks begins with progress_init. */
void progress_take(struct progress *p, const struct progress_seen *s, bool from_file, int64_t now_ms,
                   int64_t wall_ms);

#endif
