/* feed.c - grey levels through a table. */
#include "trainer/feed.h"

void feed_init(struct feed *f, const uint8_t *images, const uint8_t *labels, const uint32_t *subset,
               size_t pixels, double mean, double std)
{
    *f = (struct feed){.images = images, .labels = labels, .subset = subset, .pixels = pixels};
    for (int i = 0; i < 256; i++) {
        float scaled = (float)i / 255.0f;
        float centred = scaled - (float)mean;
        f->value[i] = centred / (float)std;
    }
}

void feed_batch(const struct feed *f, const uint32_t *positions, int64_t n, float *x, int32_t *y)
{
    for (int64_t i = 0; i < n; i++) {
        size_t item = f->subset ? f->subset[positions[i]] : positions[i];
        const uint8_t *image = f->images + item * f->pixels;
        float *out = x + (size_t)i * f->pixels;
        for (size_t p = 0; p < f->pixels; p++)
            out[p] = f->value[image[p]];
        y[i] = f->labels[item];
    }
}
