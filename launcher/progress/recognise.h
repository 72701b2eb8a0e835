/* recognise.h - recognise a training's progress in one line of its output. Pure.
 *
 * Known are the lines of this project's trainer (text and JSON), the bars of tqdm, Rich (Lightning's) and Ultralytics, the
 * lines of Hugging Face Trainer, and "epoch 3/10", "step 40/500", both or with "batch" in one line, "iter 300: loss 0.5",
 * "812 samples/s". A line of another form says nothing, nor does what stands behind a word like "val" or "loading". A wrong
 * percent is worse than none: a line with a pair that has none of these names ("[2/5] epoch 3/10") tells no totals, and a
 * line of one run of several ("Fold 1/5") tells that from now on nobody knows them. tests/golden/progress has output for each.
 *
 * Errors: none. A line is any bytes; of a longer one only RECOGNISE_LINE_BYTES are looked at. The time is linear in them.
 */
#ifndef TK_LAUNCHER_PROGRESS_RECOGNISE_H
#define TK_LAUNCHER_PROGRESS_RECOGNISE_H

#include "common/sv.h"
#include "launcher/progress/progress.h"

enum { RECOGNISE_LINE_BYTES = 2048 };

/* What the line says, without its end. False: nothing of progress; *ret is then progress_nothing. */
bool recognise_line(struct sv line, struct progress_seen *ret);

/* Cut a stream of bytes into lines that end with "\n" or "\r" and recognise each. Of a longer line the rest is dropped. */
struct recogniser {
    char line[RECOGNISE_LINE_BYTES];
    int len; /* RECOGNISER_GAP: bytes were left out, and what comes is passed over up to the end of the line */
};

enum { RECOGNISER_GAP = -1 };

/* Take bytes; `seen` is called for each line that says something. */
void recogniser_take(struct recogniser *r, const char *bytes, size_t len,
                     void (*seen)(void *ctx, const struct progress_seen *s), void *ctx);

#endif
