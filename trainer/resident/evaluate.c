/* evaluate.c - the losses of data that nobody learns from, added up on the device. */
#include "trainer/resident/state.h"

/* Its places' sample numbers, kept from one evaluation of the same subset to the next. */
static int take_subset(struct resident *r, const struct feed *f, int64_t items, struct err *err)
{
    if (f->subset == r->subset)
        return 0;
    device_free(r->ctx, r->subset_items);
    r->subset = NULL;
    r->subset_items = NULL;
    if (!f->subset)
        return 0;
    r->subset_items = resident_put_items(r, f->subset, items, err);
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
    r->chunks = 0;
    device_zero(r->ctx, r->sum, sizeof(*r->sum));
    return resident_data_open(f->part.x == r->train.of ? &r->train : &r->test, r->ctx, f, err) ||
                   take_subset(r, f, items, err)
               ? -1
               : 0;
}

void resident_evaluate_chunk(struct resident *r, int64_t first, int n)
{
    const struct train_parts *p = &r->p;

    device_put(r->ctx, r->first, &first, sizeof(first));
    queue_gather(r->ctx, &r->evaluated->gather, &r->batch, r->subset_items, NULL, r->first, n);
    const float *out = model_forward(r->model, r->ctx, r->batch.x, n, NULL);
    if (r->labels)
        queue_cross_entropy(r->ctx, r->sum, NULL, NULL, out, r->batch.labels, n, r->classes,
                            p->loss.label_smoothing, 1, r->chunks > 0);
    else
        queue_mse(r->ctx, r->sum, NULL, NULL, out, r->batch.values, n, r->classes, 1, r->chunks > 0);
    r->chunks++;
}

int resident_evaluate_end(struct resident *r, struct queued_loss *ret, struct err *err)
{
    return device_get(r->ctx, ret, r->sum, sizeof(*ret), err);
}
