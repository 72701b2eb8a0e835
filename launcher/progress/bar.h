/* bar.h - the bars of tqdm, Rich, Ultralytics and Keras in a line of output. Pure.
 *
 *   "Epoch 1/3:  20%|##        | 8/40 [00:00<00:01, 77.3it/s, loss=0.467]"
 *   "train: 20it [00:00, 46.3it/s]"
 *   "Epoch 0/2 -------- 8/40 0:00:00 * 0:00:01 60.7it/s train_loss: 0.467"   (of non-ASCII characters)
 *   "1/100  2.3G  1.159  640: 25% ---...... 2/8 4.5it/s 0.5s<1.3s"   (of non-ASCII characters)
 *   " 8/40 [=====>.......] - ETA: 1s - loss: 0.467"
 */
#ifndef TK_LAUNCHER_PROGRESS_BAR_H
#define TK_LAUNCHER_PROGRESS_BAR_H

#include "launcher/progress/fields.h"
#include "launcher/progress/progress.h"

struct bar {
    const struct field *at; /* "8/40" or "20"; NULL: the line has no bar */
    struct sv words;        /* in front of it: "Epoch 1/3:" */
    struct sv unit;         /* "it/s"; may be empty */
    double rate;            /* in this unit; NAN: none */
    bool rich;
};

struct bar bar_find(struct sv line, const struct field *fields, int n);

/* What the bar says. `first` is the line's first field, `epoch` that of this name, or NULL; has_loss: there is a loss
 * behind the bar. */
void bar_take(const struct bar *b, const struct field *first, const struct field *epoch, bool has_loss,
              struct progress_seen *s);

/* Shared with recognise.c: whether the field is a count, of a pair with its total; and what such fields say. */
bool bar_counts(const struct field *f);
void bar_loose(struct progress_seen *s, const struct field *f);
void bar_epoch_step(struct progress_seen *s, double step, double of);

#endif
