/* position.h - combine what the lines of a training say into one position in its run. Pure.
 *
 * A line gives a part of it: the epoch, a step of the epoch, a bar that may be of the run or of an epoch. A position whose
 * meaning the lines leave open has no percent.
 *
 * Ownership: everything is in the struct; no pointers.
 */
#ifndef TK_LAUNCHER_PROGRESS_POSITION_H
#define TK_LAUNCHER_PROGRESS_POSITION_H

#include <stdbool.h>
#include <stdint.h>

struct progress_seen;

/* Fields are -1 while nothing is known. */
struct position {
    /* Epochs: `epochs` were done before the one under way, of which `within` is done (0..1). */
    int64_t epochs, total_epochs, epoch_steps;
    double within;
    bool paired;     /* lines have "epoch 1/3": one without the total counts no more */
    bool zero_based; /* the first epoch is 0 */
    bool ended;      /* the last line closed the epoch: what begins anew is in the next one */
    bool again;      /* all epochs were done, and they began again: of another fold, or stage */
    bool lead;       /* bars that have no words are of an epoch */
    int64_t heard_epochs, heard_step; /* at the last bar of an epoch */
    /* Steps of the run. */
    int64_t step, steps;
    /* Bars without words: one, or one in another. */
    int64_t outer, outer_steps, inner, inner_steps;
    int strangers; /* another bar was seen since the outer one moved: so often */
    bool unclear;  /* one began behind the end of another: it is of an epoch, and nobody told of how many */
};

/* What a position rests on. */
enum position_source { POSITION_NONE, POSITION_RUN, POSITION_EPOCHS, POSITION_BARS, POSITION_FILE };

struct position_now {
    enum position_source source;
    int64_t step, total_steps, epoch, total_epochs; /* -1: not known; the first epoch is 1 */
    double percent;                                 /* 0..100; NAN: not known */
};

void position_init(struct position *p);
void position_take(struct position *p, const struct progress_seen *s);
struct position_now position_now(const struct position *p);

#endif
