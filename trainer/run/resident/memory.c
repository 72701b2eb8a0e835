/* memory.c - allocate and free the GPU memory for training. */
#include "trainer/run/resident/resident_state.h"

#include "common/memory.h"
#include "kernels/queued.h"

#include <stdlib.h>

_Static_assert(QUEUED_FLAGS == (int)DEVICE_FLAGS, "flags ride as collectives say");

/* The communicator that reduces the gradient, or NULL. */
static struct device_comm *gradient_comm(const struct resident *r)
{
    return r->stages ? NULL : r->p.pipeline->o.device_comm;
}

/* Memory for n numbers that communicator `by` reduces; it allocates and frees them. NULL: the device does. */
static float *summed(struct resident *r, struct device_comm *by, size_t n, struct err *err)
{
    return by ? by->buffer(by, n * sizeof(float), r->p.pipeline->o.timeout_ms, err)
              : device_alloc(r->ctx, n * sizeof(float), err);
}

/* Allocate gradient, loss and flags in one piece, which one call reduces. With stages, ranks reduce only loss
 * and flags. */
static bool take_gradient(struct resident *r, struct err *err)
{
    struct device_comm *all = r->p.pipeline->o.device_comm;
    const size_t tail = 1 + (all ? QUEUED_FLAGS : 0);

    r->grad = summed(r, gradient_comm(r), r->len + (r->separate_loss ? 0 : tail), err);
    r->loss_sum = !r->grad ? NULL : r->separate_loss ? summed(r, all, tail, err) : r->grad + r->len;
    r->flags = all && r->loss_sum ? r->loss_sum + 1 : NULL;
    return r->loss_sum;
}

/* The memory that model_to_device, take_memory and take_scratch allocate, with two moments and a second
 * gradient. */
int resident_needs(const struct model_spec *spec, int rows, size_t *ret, struct err *err)
{
    struct model_needs m;

    if (model_needs(spec, rows, &m, err))
        return -1;
    const size_t batch = (size_t)rows, targets = (size_t)spec->input.rows;
    const size_t copies = spec->numbers.element == ELEMENT_F32 ? 0 : element_bytes(spec->numbers.element);
    const size_t each = 5 * sizeof(float) + copies; /* values, moments, gradients; and the copies that passes
                                                     * read */
    *ret = m.bytes + m.len * each +
           batch * sizeof(float) * (m.forward_len + shape_len(&spec->input) + targets + 2);
    return 0;
}

static int take_memory(struct resident *r, struct err *err)
{
    const struct train_parts *p = &r->p;
    size_t batch = (size_t)r->model->batch_max;
    if (r->stages && batch < (size_t)p->pipeline->o.batch) /* all micro-batches are in memory */
        batch = (size_t)p->pipeline->o.batch;
    struct sampler whole = p->sampler;
    size_t values = (size_t)(p->feed.values ? p->feed.values : 1);
    struct kctx *ctx = r->ctx;

    whole.first = 0;
    r->order_max = sampler_len(&whole);
    r->batch =
        (struct gather_batch){.x = device_alloc(ctx, batch * p->feed.len * sizeof(float), err),
                              .labels = device_alloc(ctx, batch * (size_t)r->outputs * sizeof(int32_t), err),
                              .values = device_alloc(ctx, batch * values * sizeof(float), err),
                              .samples = device_alloc(ctx, batch * sizeof(uint32_t), err)};
    return r->batch.x && r->batch.labels && r->batch.values && r->batch.samples &&
                   (r->order = device_alloc(ctx, (size_t)r->order_max * sizeof(uint32_t), err)) &&
                   (!pipeline_is_last(p->pipeline) ||
                    (r->dlogits =
                         device_alloc(ctx, batch * p->pipeline->forward_len * sizeof(float), err))) &&
                   take_gradient(r, err) &&
                   (r->micro == 1 || (r->more = device_alloc(ctx, r->len * sizeof(float), err))) &&
                   (!(p->optim->spec.clip > 0) || (r->norm = device_alloc(ctx, sizeof(*r->norm), err))) &&
                   (!p->optim->m || (r->m = device_alloc(ctx, p->optim->len * sizeof(float), err))) &&
                   (!p->optim->v || (r->v = device_alloc(ctx, p->optim->len * sizeof(float), err))) &&
                   (r->loss = device_alloc(ctx, sizeof(*r->loss), err)) &&
                   (r->sum = device_alloc(ctx, sizeof(*r->sum), err)) &&
                   (r->first = device_alloc(ctx, sizeof(*r->first), err)) &&
                   (r->state = device_alloc(ctx, sizeof(*r->state), err)) &&
                   (r->span = device_alloc(ctx, (size_t)p->optim->spans * sizeof(*r->span), err)) &&
                   (r->orders = device_shared(ctx, RESIDENT_RING * sizeof(*r->orders), err)) &&
                   (r->records = device_shared(ctx, RESIDENT_RING * sizeof(*r->records), err))
               ? 0
               : -1;
}

/* Scratch for a head's logits: as many as give fast products, never all at once. */
static int take_scratch(struct resident *r, struct err *err)
{
    const struct pipeline *pl = r->p.pipeline;
    const struct linear_shape head = {.rows = r->model->batch_max * r->outputs,
                                      .in = (int)(pl->forward_len / (size_t)r->outputs),
                                      .out = pl->output.channels};

    return model_has_head(r->model) ? kctx_reserve(r->ctx, queued_classifier_bytes(&head), err) : 0;
}

static void put_spans(struct resident *r)
{
    const struct optim *o = r->p.optim;
    cleanup_free struct queued_span *span = memory_must(calloc((size_t)o->spans + 1, sizeof(*span)));

    for (int i = 0; i < o->spans; i++)
        span[i] = (struct queued_span){(int64_t)(o->span[i].offset + o->span[i].len), o->span[i].decay};
    device_put(r->ctx, r->span, span, (size_t)o->spans * sizeof(*span));
}

struct resident *resident_open(const struct train_parts *p, struct err *err)
{
    struct resident *r = memory_must(calloc(1, sizeof(*r)));

    r->p = *p;
    r->ctx = p->pipeline->o.ctx;
    r->model = p->pipeline->model;
    r->len = r->model->len;
    r->stages = p->pipeline->at.stages > 1;
    r->whole = p->pipeline->o.device_comm || p->pipeline->o.comm->world == 1;
    r->separate_loss = r->stages && p->pipeline->o.device_comm;
    r->labels = !loss_wants_values(&p->loss);
    r->outputs = p->feed.labels;
    r->classes = (int)(p->pipeline->forward_len / (size_t)r->outputs);
    r->micro = r->stages ? 1 : p->pipeline->o.micro_batches;
    r->sequence = p->feed.part.tokens;
    if ((!r->stages && model_to_device(r->model, r->ctx, err)) || take_memory(r, err) ||
        take_scratch(r, err) || resident_windows_take(r, err) ||
        (!r->sequence && resident_data_open(&r->train, r->ctx, &p->feed, err)) ||
        (p->feed.subset &&
         !(r->train_items = resident_copied(r->ctx, p->feed.subset,
                                            (size_t)p->sampler.items * sizeof(*r->train_items), err))) ||
        device_sync(r->ctx, err)) {
        resident_close(r);
        return NULL;
    }
    put_spans(r);
    resident_push(r);
    return r;
}

void resident_close(struct resident *r)
{
    if (!r)
        return;
    if (!resident_is_ours(r)) {
        free(r);
        return;
    }
    if (gradient_comm(r))
        r->grad = NULL;
    void *own[] = {r->batch.x,     r->batch.labels, r->batch.values, r->batch.samples,
                   r->order,       r->dlogits,      r->grad,         r->m,
                   r->v,           r->more,         r->norm,         r->loss,
                   r->sum,         r->first,        r->state,        r->span,
                   r->train_items, r->subset_items};
    for (int i = 0; i < RESIDENT_GRAPHS; i++)
        resident_forget(r, &r->graph[i]);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        device_free(r->ctx, own[i]);
    resident_windows_give(r);
    device_shared_free(r->ctx, r->orders);
    device_shared_free(r->ctx, r->records);
    resident_data_close(&r->train, r->ctx);
    resident_data_close(&r->test, r->ctx);
    free(r);
}
