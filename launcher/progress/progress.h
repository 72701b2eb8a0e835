/* progress.h - compute the progress of a training (steps, percent, time left) from observations: lines that
 * rank 0 prints, or the progress file. tracker.c calls it. Pure: times are arguments.
 *
 * An observation has the values of one line (recognise.h) or of one version of the file (progress_file.h); a
 * value that is not in it is absent. struct progress has all values known of one round of ranks. If the lines
 * are ambiguous, there is no percent.
 *
 * Ownership: everything is in the structs; no pointers.
 * Units:     steps and epochs are counts; loss as printed; samples per second; _ms are milliseconds of the monotonic
 *            clock, wall_ms of Unix time.
 * Errors:    none: a value that is NaN or out of bounds (below) is absent. */
#ifndef TK_LAUNCHER_PROGRESS_PROGRESS_H
#define TK_LAUNCHER_PROGRESS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Absent: counts are -1, numbers are NAN. Counts are 0 to PROGRESS_COUNT_MAX. */
#define PROGRESS_COUNT_MAX INT64_C(1000000000000000)

/* The values of one line, as printed: the first epoch may be 0. */
struct progress_seen {
    int64_t step, total_steps;   /* of the run, or of the current epoch */
    bool in_epoch;               /* the line shows that they are of the epoch */
    bool download;               /* they are of a download: only total_steps is set */
    int64_t epoch, total_epochs; /* the current epoch */
    double within;               /* the part of the epoch that is done, 0..1, if there is no step */
    bool several;                /* the run is one of several (folds, trials) */
    double loss, samples_per_second;
    double percent; /* of the run */
};

/* All fields absent. */
struct progress_seen progress_nothing(void);

/* Whether any field is present. */
bool progress_says(const struct progress_seen *s);

/* The position of the training according to the lines. */
struct position {
    /* Epochs: `epochs` are done before the current one, of which `within` is done (0..1). */
    int64_t epochs, total_epochs, epoch_steps;
    double within;
    bool paired;        /* lines have "epoch 1/3": ignore epochs without a total from now on */
    bool zero_based;    /* the first epoch is 0 */
    bool ended;         /* the last line ended the epoch: steps that begin again are of the next one */
    bool chatty;        /* several lines with a loss per epoch: such a line does not end it */
    bool fresh;         /* no line has reported a step of this epoch yet */
    int64_t heard_step; /* the last step that a line reported of an epoch */
    /* Steps of the run: those that no line reports as steps of an epoch. */
    int64_t step, steps;
    bool unclear; /* there are other steps too, or steps after the last one: both may be of an epoch */
    bool several; /* the run is one of several, or ambiguous: no percent from now on */
};

struct progress {
    struct progress_seen now; /* the known values; the first epoch is 1, percent is 0..100 */
    int64_t eta_ms;           /* time left; -1: not known, or the last two estimates differ too much */
    int64_t wall_ms;          /* of the last observation; 0: none yet */
    bool from_file;           /* the program writes the progress file: ignore lines */
    /* Internal: the position, and the estimate of the time left. */
    struct position position;
    int falls;
    bool estimated; /* at least one estimate since since_ms */
    int64_t since_ms, last_ms;
    double last_percent, percent_per_ms, left_ms;
};

void progress_init(struct progress *p);

/* Use an observation. After a restart of the ranks, call progress_init first. */
void progress_take(struct progress *p, const struct progress_seen *s, bool from_file, int64_t now_ms,
                   int64_t wall_ms);

#endif
