/* feed.h - images and labels of a data set, decoded into a batch.
 *
 * Ownership: borrows the images, the labels and the subset; the caller owns the batch.
 * Numerics:  a pixel becomes (x / 255 - mean) / std in f32, rounded after each of the three operations, as
 *            torchvision's ToTensor and Normalize do it.
 */
#ifndef TK_TRAINER_FEED_H
#define TK_TRAINER_FEED_H

#include <stddef.h>
#include <stdint.h>

struct feed {
    const uint8_t *images;  /* (items, pixels) */
    const uint8_t *labels;  /* (items) */
    const uint32_t *subset; /* item numbers of the part that is used; NULL: all, in their own order */
    size_t pixels;
    float value[256]; /* of each grey level */
};

void feed_init(struct feed *f, const uint8_t *images, const uint8_t *labels, const uint32_t *subset,
               size_t pixels, double mean, double std);

/* Write `n` samples: positions are places in the subset. x (n, pixels), y (n). */
void feed_batch(const struct feed *f, const uint32_t *positions, int64_t n, float *x, int32_t *y);

#endif
