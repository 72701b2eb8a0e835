/* feed.h - decode samples of a data set into a batch: scale, normalise, targets. train.c and evaluate.c call
 * it.
 *
 * Ownership: borrows the samples and the subset; the caller owns the batch.
 * Errors:    ERR_INVALID: a token that is not below the model's vocabulary.
 * Numerics:  an element becomes (x / scale - mean) / std in f32, rounded after each of the three operations,
 *            as in torchvision's ToTensor and Normalize. Operations without effect are skipped.
 */
#ifndef TK_TRAINER_RUN_FEED_H
#define TK_TRAINER_RUN_FEED_H

#include "trainer/data/source.h"

#include <stddef.h>
#include <stdint.h>

struct feed {
    struct data_part part;
    const uint32_t *subset; /* indices of the samples used; NULL: all, in order */
    size_t len;             /* elements of an input */
    bool floats;
    int32_t values; /* numbers per target; 0: labels */
    int32_t labels; /* labels per target: one, or one per step of a sequence */
    int32_t vocab;  /* the model's vocabulary size: tokens must be below it */
    bool as_is;     /* floats that are copied unchanged */
    float scale;
    int32_t stats; /* 1, or as many as channels */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
    float byte[256]; /* the float of each byte, if stats is 1 */
};

/* `test`: use the test samples; else those for training and validation. spec->stats is 1 or the number of
 * channels. */
void feed_init(struct feed *f, const struct dataset *set, bool test, const uint32_t *subset,
               const struct data_spec *spec);

/* Fill table (stats, 256): the float of each byte for each channel. Only for data in bytes. */
void feed_byte_table(const struct feed *f, float *table);

/* Buffers for a batch's targets: labels or values, depending on the data. */
struct feed_targets {
    int32_t *labels; /* (n, labels) */
    float *values;   /* (n, values) */
};

/* Decode the `n` samples at `positions` of the subset into x (n, len) and *to. */
int feed_batch(const struct feed *f, const uint32_t *positions, int64_t n, float *x,
               const struct feed_targets *to, struct err *err) MUST_CHECK;

#endif
