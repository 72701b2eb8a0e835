/* feed.h - decode samples of a data set into a batch: scale, normalise, targets.
 *
 * Ownership: borrows the samples and the subset; the caller owns the batch.
 * Errors:    ERR_INVALID: a token that is not below the model's vocabulary.
 * Numerics:  an element becomes (x / scale - mean) / std in f32, rounded after each of the three operations, as
 *            torchvision's ToTensor and Normalize do it. Operations that change nothing are left out.
 */
#ifndef TK_TRAINER_RUN_FEED_H
#define TK_TRAINER_RUN_FEED_H

#include "trainer/data/source.h"

#include <stddef.h>
#include <stdint.h>

struct feed {
    struct data_part part;
    const uint32_t *subset; /* indices of the samples used; NULL: all, in order */
    size_t len;             /* of an input */
    bool floats;
    int32_t values; /* numbers of a target; 0: labels */
    int32_t labels; /* of a target: one, or one for each step of a sequence */
    int32_t vocab;  /* tokens must be below it: the model's, once it is known */
    bool as_is;     /* floats that need no arithmetic */
    float scale;
    int32_t stats; /* 1, or as many as channels */
    float mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
    float byte[256]; /* what each byte becomes, when stats is 1 */
};

/* `test`: of the test samples, else of those to train and validate on. spec->stats is 1 or the number of channels. */
void feed_init(struct feed *f, const struct dataset *set, bool test, const uint32_t *subset,
               const struct data_spec *spec);

/* Fill table (stats, 256): the float of each byte for each channel's statistics. Only for data in bytes. */
void feed_byte_table(const struct feed *f, float *table);

/* Where a batch's targets go: labels or values, by the kind of the data. */
struct feed_targets {
    int32_t *labels; /* (n, labels) */
    float *values;   /* (n, values) */
};

/* Decode the `n` samples at `positions` of the subset into x (n, len) and *to. */
int feed_batch(const struct feed *f, const uint32_t *positions, int64_t n, float *x,
               const struct feed_targets *to, struct err *err) MUST_CHECK;

#endif
