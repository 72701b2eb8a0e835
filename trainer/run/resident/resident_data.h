/* resident_data.h - a part of a data set in device memory. memory.c and evaluate.c call it.
 *
 * Ownership: resident_data_open to resident_data_close, with the same context.
 * Numerics:  a batch equals feed_batch's bit for bit: bytes use the same table, and floats are decoded before
 *            the copy. */
#ifndef TK_TRAINER_RUN_RESIDENT_RESIDENT_DATA_H
#define TK_TRAINER_RUN_RESIDENT_RESIDENT_DATA_H

#include "kernels/queued.h"
#include "trainer/run/feed.h"

struct resident_data {
    const void *of; /* the inputs in host memory; NULL: nothing is loaded */
    struct gather gather;
};

/* Allocate device memory and copy these bytes into it. */
void *resident_copied(struct kctx *ctx, const void *from, size_t bytes, struct err *err) MUST_CHECK;

/* Load the part of the data that f reads, for any subset. Does nothing if it is loaded already. */
int resident_data_open(struct resident_data *d, struct kctx *ctx, const struct feed *f,
                       struct err *err) MUST_CHECK;
void resident_data_close(struct resident_data *d, struct kctx *ctx);

#endif
