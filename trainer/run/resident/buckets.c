/* buckets.c - the ranks' sums of gradients, taken while the backward pass still makes others.
 *
 * Gradients lie in the order of the layers, and come in the opposite one: what is there is always the end of the buffer, the
 * loss and the flags behind it included, and is cut off a bucket at a time. A bucket's sum is queued on the device's second
 * stream behind the layer that ended it, and all of that joins the first before the optimiser. It is recorded with the step,
 * so all ranks launch the same sums in the same order. What the first layer adds, an embedding that the head shares, is a
 * last bucket that nothing is left to hide behind.
 */
#include "trainer/run/resident/resident_state.h"

/* Buckets begin at multiples of 256 bytes, as cudaMalloc's memory does: NCCL copies 16 at a time. */
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
        queue_accumulate(r->ctx, r->grad + from, grad + from, params_end - from);
    device_fork(r->ctx);
    void *side = device_side_stream(r->ctx);
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
    device_join(r->ctx);
    return 0;
}
