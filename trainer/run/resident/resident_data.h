/* resident_data.h - a part of a data set in a device's memory.
 *
 * Ownership: resident_data_open to resident_data_close, with the same context.
 * Numerics:  a batch is what feed_batch makes of it, to the bit: bytes go by the same table, floats are decoded before
 *            they are copied.
 */
#ifndef TK_TRAINER_RUN_RESIDENT_RESIDENT_DATA_H
#define TK_TRAINER_RUN_RESIDENT_RESIDENT_DATA_H

#include "kernels/queued.h"
#include "trainer/run/feed.h"

struct resident_data {
    const void *of; /* the inputs in the process's memory; NULL: nothing is loaded */
    struct gather gather;
};

/* Memory of the device with these bytes in it. */
void *resident_copied(struct kctx *ctx, const void *from, size_t bytes, struct err *err) MUST_CHECK;

/* The part of the data that f reads, whatever the subset; what is loaded already stays. */
int resident_data_open(struct resident_data *d, struct kctx *ctx, const struct feed *f,
                       struct err *err) MUST_CHECK;
void resident_data_close(struct resident_data *d, struct kctx *ctx);

#endif
