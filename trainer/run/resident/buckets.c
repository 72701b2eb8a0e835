/* buckets.c - reduce gradients over ranks while the backward pass still computes others.
 *
 * Gradients are stored in the order of the layers, and the backward pass computes them in reverse. So the
 * finished ones are always the end of the buffer, followed by loss and flags; each bucket is the next part
 * from the end. The all-reduce of a bucket is queued on the device's second stream after the layer that
 * completed it, and the first stream waits for all of them before the optimizer. They are recorded with the
 * step, so all ranks launch the same ones in the same order. The gradient that the first layer adds (an
 * embedding tied to the head) is the last bucket, which no computation overlaps.
 */
#include "trainer/run/resident/resident_state.h"

/* Buckets begin at multiples of 256 bytes, as cudaMalloc's memory does: NCCL copies 16 bytes at a time. */
enum { ALIGN = 64 };

static size_t sent_len(const struct resident *r)
{
    return r->len + 1 + QUEUED_FLAGS;
}

bool resident_has_buckets(const struct resident *r)
{
    const size_t least = r->p.bucket_bytes / sizeof(float);

    return r->p.pipeline->o.device_comm && !r->stages && least && r->len / 2 >= least;
}

static int queue_sum(struct resident *r, const float *grad, size_t from, size_t end, struct err *err)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;
    const size_t params_end = end < r->len ? end : r->len;

    if (grad != r->grad && from < params_end)
        r->ctx->ops->queue_accumulate(r->ctx, r->grad + from, grad + from, params_end - from);
    r->ctx->ops->fork(r->ctx);
    void *side = r->ctx->ops->side(r->ctx);
    return c->all_reduce(c, r->grad + from, end - from, DEVICE_F32, side, err) ||
                   resident_arrived(r, side, err)
               ? -1
               : 0;
}

int resident_queue_buckets(struct resident *r, float *grad, struct err *err)
{
    const size_t least = r->p.bucket_bytes / sizeof(float);
    struct model_pass pass = model_backward_begin(r->model, r->dlogits, grad, NULL);
    size_t end = sent_len(r);
    bool more = true;

    while (more) {
        size_t from;
        more = model_backward_next(r->model, r->ctx, &pass, &from);
        from = (from + ALIGN - 1) / ALIGN * ALIGN;
        if (more && (from >= end || end - from < least))
            continue;
        if (queue_sum(r, grad, from, end, err))
            return -1;
        end = from;
    }
    r->ctx->ops->join(r->ctx);
    return 0;
}
