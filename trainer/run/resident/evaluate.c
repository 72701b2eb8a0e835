/* evaluate.c - evaluate on a GPU: sum losses and correct answers in its memory. */
#include "trainer/run/resident/resident_state.h"

/* Copy the subset's sample numbers to the device, unless they are there from the last evaluation. */
static int take_subset(struct resident *r, const struct feed *f, int64_t items, struct err *err)
{
    if (f->subset == r->subset)
        return 0;
    device_free(r->ctx, r->subset_items);
    r->subset = NULL;
    r->subset_items = NULL;
    if (!f->subset)
        return 0;
    r->subset_items = resident_copied(r->ctx, f->subset, (size_t)items * sizeof(*f->subset), err);
    if (!r->subset_items)
        return -1;
    r->subset = f->subset;
    return 0;
}

int resident_evaluate_begin(struct resident *r, const struct feed *f, int64_t items, struct err *err)
{
    if (resident_settle(r, err))
        return -1;
    r->evaluated = f->part.x == r->train.of ? &r->train : &r->test;
    device_zero(r->ctx, r->sum, sizeof(*r->sum));
    if (r->sequence)
        return 0;
    return resident_data_open(f->part.x == r->train.of ? &r->train : &r->test, r->ctx, f, err) ||
                   take_subset(r, f, items, err)
               ? -1
               : 0;
}

/* Only the last stage computes the loss. */
static int evaluate_batch(struct resident *r, int n, struct err *err)
{
    const struct micro_batch all = {.rows = n};
    const void *out;

    if (pipeline_forward(r->p.pipeline, &all, r->batch.x, NULL, &out, err))
        return -1;
    return out ? resident_queue_loss(r, &all, out, 1, r->sum, NULL, err) : 0;
}

int resident_evaluate_chunk(struct resident *r, int64_t first, int n, struct err *err)
{
    device_put(r->ctx, r->first, &first, sizeof(first));
    r->ctx->ops->queue_gather(r->ctx, &r->evaluated->gather, &r->batch, r->subset_items, NULL, r->first, NULL,
                              n);
    return evaluate_batch(r, n, err);
}

int resident_evaluate_windows(struct resident *r, const float *x, const int32_t *labels, int n,
                              struct err *err)
{
    const size_t tokens = (size_t)n * (size_t)r->outputs;

    device_put(r->ctx, r->batch.x, x, tokens * sizeof(*x));
    device_put(r->ctx, r->batch.labels, labels, tokens * sizeof(*labels));
    return evaluate_batch(r, n, err);
}

int resident_evaluate_end(struct resident *r, struct queued_loss *ret, struct err *err)
{
    return device_get(r->ctx, ret, r->sum, sizeof(*ret), err);
}
