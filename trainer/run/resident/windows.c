/* windows.c - pass tokens to the device: the host writes a step's windows to a slot in memory that the device
 * can read, and the step begins by fetching them. So a data set may be larger than device memory, and the
 * host checks tokens, so that an error names the file and the position. The transfer is eight bytes per
 * token.
 */
#include "trainer/run/resident/resident_state.h"

int resident_windows_take(struct resident *r, struct err *err)
{
    const struct train_parts *p = &r->p;
    struct queued_windows *w = &r->windows;

    if (!r->sequence)
        return 0;
    *w = (struct queued_windows){.rows = p->pipeline->o.batch, .time = p->feed.labels, .ring = RESIDENT_RING};
    const size_t rows = (size_t)w->rows * RESIDENT_RING;
    const size_t tokens = rows * (size_t)w->time;
    return (w->x = device_shared(r->ctx, tokens * sizeof(*w->x), err)) &&
                   (w->labels = device_shared(r->ctx, tokens * sizeof(*w->labels), err)) &&
                   (w->samples = device_shared(r->ctx, rows * sizeof(*w->samples), err))
               ? 0
               : -1;
}

void resident_windows_give(struct resident *r)
{
    device_shared_free(r->ctx, r->windows.x);
    device_shared_free(r->ctx, r->windows.labels);
    device_shared_free(r->ctx, r->windows.samples);
}

int resident_windows_put(struct resident *r, int64_t step, struct err *err)
{
    struct queued_windows *w = &r->windows;
    const size_t row = (size_t)(r->launched % RESIDENT_RING) * (size_t)w->rows;
    const size_t token = row * (size_t)w->time;
    struct feed_targets to = {.labels = w->labels + token};

    if (!r->sequence)
        return 0;
    int64_t rows = sampler_batch(&r->sampler, r->epoch, step, r->p.pipeline->o.batch, w->samples + row);
    return feed_batch(&r->p.feed, w->samples + row, rows, w->x + token, &to, err);
}
