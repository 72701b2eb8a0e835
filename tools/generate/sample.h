/* sample.h - draw one class from logits, for text generation. Pure.
 *
 * Numerics:  the same numbers and the same generator give the same class on every machine of one C library: sums are f64 and
 *            run in the order of classes.
 */
#ifndef TK_TOOLS_GENERATE_SAMPLE_H
#define TK_TOOLS_GENERATE_SAMPLE_H

#include "trainer/rng/torch_rng.h"

struct sample_options {
    double temperature; /* 0: the likeliest, the first of several; nothing is drawn */
    int top_k;          /* 0: all; else the likeliest so many, and those that equal the last of them */
};

/* Takes two words of `g`. heap: memory for top_k floats. */
int sample(const struct sample_options *o, const float *logits, int classes, float *heap,
           struct torch_rng *g);

#endif
