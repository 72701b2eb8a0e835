/* fields.h - the numbers of a line of output, each with the words in front of it and the unit behind it. Pure.
 *
 *   "Epoch [3/10], train loss: 0.53, 812 samples/s"  has  3 of 10 (key "Epoch"), 0.53 (key "loss", before it "train"),
 *                                                         812 (unit "samples/s")
 *
 * A key is the word right in front of the number, with nothing but blanks, ':', '=', '#', quotes or an opening bracket
 * between them. Dates, times and paths give numbers without a key, or none.
 *
 * Ownership: fields point into the line.
 */
#ifndef TK_LAUNCHER_PROGRESS_FIELDS_H
#define TK_LAUNCHER_PROGRESS_FIELDS_H

#include "common/sv.h"

enum { FIELDS_MAX = 48 };

struct field {
    struct sv key, before; /* before: the word in front of the key; both may be empty */
    struct sv unit;        /* "it/s", "%"; may be empty */
    double value;          /* finite */
    double of;             /* of "3/10" and "3 of 10"; NAN: a single number */
    bool whole;            /* digits only, in both numbers */
    bool boxed;            /* in brackets of its own: "[3/10]", or "[3/10 (30%)]" */
    bool aside;            /* a word in front of it tells of something else than training: "Test: epoch 3" */
    bool part;             /* boxed, with a percent: "[1280/60000 (2%)]" */
    const char *start, *end; /* of the number; behind it, its unit and its bracket */
};

/* Returns how many; of more than FIELDS_MAX the first ones. */
int fields_scan(struct sv line, struct field out[static FIELDS_MAX]);

/* Whether a part of the name ("train" of "train/loss", "train_loss", "train loss") tells of something else than training:
 * validation, a download, the preparation of data. */
bool fields_aside(struct sv name);

/* Whether a part of the name equals one of `words`, which ends with NULL; case does not count. */
bool fields_has(struct sv name, const char *const *words);

/* Whether every part does. */
bool fields_only(struct sv name, const char *const *words);

/* The last part of the name: "loss" of "train/loss". */
struct sv fields_last_part(struct sv name);

#endif
