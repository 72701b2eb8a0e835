/* recognise.h - recognise a training's progress in one line of its output. tracker.c calls it. Pure.
 *
 * It knows the lines of this project's trainer (text and JSON), the bars of tqdm, Rich (Lightning's) and
 * Ultralytics, the lines of Hugging Face Trainer, and "epoch 3/10", "step 40/500", both or with "batch" in
 * one line, "iter 300: loss 0.5", "812 samples/s". It ignores lines of other forms, and the part of a line
 * after a word like "val" or "loading". A wrong percent is worse than none. So a line with a pair of another
 * name ("[2/5] epoch 3/10") gives no totals, and after a line of one run of several ("Fold 1/5") there are
 * none any more. tests/golden/progress has examples of each.
 *
 * Errors: none. A line may contain any bytes; only its first RECOGNISE_LINE_BYTES are used. The time is
 *         linear in them.
 */
#ifndef TK_LAUNCHER_PROGRESS_RECOGNISE_H
#define TK_LAUNCHER_PROGRESS_RECOGNISE_H

#include "common/sv.h"
#include "launcher/progress/progress.h"

enum { RECOGNISE_LINE_BYTES = 2048 };

/* Recognise a line, given without its newline. False: it has no progress, and *ret is progress_nothing. */
bool recognise_line(struct sv line, struct progress_seen *ret);

/* Splits a stream of bytes into lines that end with "\n" or "\r", for recognise_line. The rest of a longer
 * line is dropped. */
struct recogniser {
    char line[RECOGNISE_LINE_BYTES];
    int len; /* RECOGNISER_GAP: bytes are missing; skip to the end of the line */
};

enum { RECOGNISER_GAP = -1 };

/* Process bytes; calls `seen` for each line with progress. */
void recogniser_take(struct recogniser *r, const char *bytes, size_t len,
                     void (*seen)(void *ctx, const struct progress_seen *s), void *ctx);

#endif
