/* progress.h - how far a training is, from the lines that its rank 0 prints or from the file that it keeps: observations
 * become steps, percent, time left. Pure: times are arguments.
 *
 * An observation is what one line (recognise.h) or one state of the file (progress_file.h) says; a field that it does not
 * say is absent. struct progress is what is known so far of one round of ranks. A position whose meaning the lines leave open
 * has no percent.
 *
 * Ownership: everything is in the structs; no pointers.
 * Units:     steps and epochs are counts; loss as printed; samples per second; _ms are milliseconds of the monotonic
 *            clock, wall_ms of Unix time.
 * Errors:    none: a number that is no number, or out of bounds (below), counts as absent.
 */
#ifndef TK_LAUNCHER_PROGRESS_PROGRESS_H
#define TK_LAUNCHER_PROGRESS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Absent: counts are -1, numbers are NAN. Counts are 0 to PROGRESS_COUNT_MAX. */
#define PROGRESS_COUNT_MAX INT64_C(1000000000000000)

/* What one line says. Numbers are as printed: the first epoch may be 0. */
struct progress_seen {
    int64_t step, total_steps;   /* of the run, or of the epoch under way */
    bool in_epoch;               /* ... of the epoch, as the line says */
    bool download;               /* ... of a download, after all: the line says nothing but total_steps */
    int64_t epoch, total_epochs; /* the epoch under way */
    double within;               /* of the epoch that is done, 0..1, where there is no step */
    bool several;                /* the run is one of several */
    double loss, samples_per_second;
    double percent; /* of the run */
};

/* All fields absent. */
struct progress_seen progress_nothing(void);

/* Whether a field is there. */
bool progress_says(const struct progress_seen *s);

/* Where the lines say that the training is. */
struct position {
    /* Epochs: `epochs` were done before the one under way, of which `within` is done (0..1). */
    int64_t epochs, total_epochs, epoch_steps;
    double within;
    bool paired;        /* lines have "epoch 1/3": one without the total counts no more */
    bool zero_based;    /* the first epoch is 0 */
    bool ended;         /* the last line closed the epoch: what begins anew is in the next one */
    bool chatty;        /* lines with a loss come more than once in an epoch: they do not close it */
    bool fresh;         /* no line has reported a step of this epoch */
    int64_t heard_step; /* the last one that was told of an epoch */
    /* Steps of the run: what no line tells to be of an epoch. */
    int64_t step, steps;
    bool unclear; /* other steps came beside them, or behind their end: both may be of an epoch */
    bool several; /* one run of several, or none that is known: no percent from now on */
};

struct progress {
    struct progress_seen now; /* what is known; the first epoch is 1, percent 0..100 */
    int64_t eta_ms;           /* time left; -1: not known, or the last two estimates did not agree yet */
    int64_t wall_ms;          /* of the last observation; 0: none yet */
    bool from_file;           /* lines count no more: the program keeps the file */
    /* Internal: where it is, and the estimate of the time left. */
    struct position position;
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
