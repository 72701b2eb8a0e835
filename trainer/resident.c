/* resident.c - the step on a device: recorded, launched, and looked after. */
#include "trainer/resident.h"

#include "kernels/device.h"
#include "trainer/collectives/device.h"
#include "trainer/model/loss.h"
#include "trainer/resident_data.h"

#include <math.h>
#include <stdlib.h>

enum { CLOSE_MS = 500 }; /* for steps that are in flight when a run ends early */

/* Of a number of rows: the whole step, or its two halves around the exchange. */
struct recorded {
    int rows;
    int64_t used; /* how often */
    struct device_graph *half[2];
};

struct resident {
    struct train_parts p;
    struct kctx *ctx;
    struct model *model;
    size_t len;   /* parameters */
    bool whole;   /* a step is one graph */
    float *flags; /* behind the gradient and the loss, with NCCL */
    bool labels;  /* else values */
    int classes;

    struct resident_data train, test;
    struct gather_batch batch;
    uint32_t *order; /* this rank's places, in turn; (sampler_len of a whole epoch) */
    int64_t order_len, order_max;
    float *dlogits, *grad, *m, *v;
    struct queued_loss *loss, *sum; /* of a step; of an evaluation */
    int64_t *first;                 /* an evaluation's next place */
    struct step_state *state;
    struct queued_span *span;
    struct step_order *orders; /* (RESIDENT_RING), shared with the device, as the next */
    struct step_record *records;

    uint32_t *train_items;  /* the split's sample numbers; NULL: all */
    const uint32_t *subset; /* of which subset_items is the copy, for evaluations */
    uint32_t *subset_items;
    const struct resident_data *evaluated;
    int64_t launched, seen; /* steps; of how many the record was read */
    int64_t chunks;
    struct step_record last; /* that was read */
    struct recorded graph[RESIDENT_GRAPHS];
};

_Static_assert(QUEUED_FLAGS == (int)DEVICE_FLAGS, "flags ride as collectives say");

/* NCCL's own memory where there is NCCL: the table frees it. */
static bool take_gradient(struct resident *r, struct err *err)
{
    struct device_comm *c = r->p.device_comm;
    size_t n = r->len + 1;

    r->grad = c ? c->buffer(c, (n + QUEUED_FLAGS) * sizeof(float), r->p.timeout_ms, err)
                : device_alloc(r->ctx, n * sizeof(float), err);
    r->flags = c && r->grad ? r->grad + n : NULL;
    return r->grad;
}

static int take_memory(struct resident *r, struct err *err)
{
    const struct train_parts *p = &r->p;
    size_t batch = (size_t)model_batch_max(r->model);
    struct sampler whole = p->sampler;
    size_t values = (size_t)(p->feed.values ? p->feed.values : 1);
    struct kctx *ctx = r->ctx;

    whole.first = 0;
    r->order_max = sampler_len(&whole);
    r->batch = (struct gather_batch){.x = device_alloc(ctx, batch * p->feed.len * sizeof(float), err),
                                     .labels = device_alloc(ctx, batch * sizeof(int32_t), err),
                                     .values = device_alloc(ctx, batch * values * sizeof(float), err),
                                     .samples = device_alloc(ctx, batch * sizeof(uint32_t), err)};
    return r->batch.x && r->batch.labels && r->batch.values && r->batch.samples &&
                   (r->order = device_alloc(ctx, (size_t)r->order_max * sizeof(uint32_t), err)) &&
                   (r->dlogits = device_alloc(ctx, batch * (size_t)r->classes * sizeof(float), err)) &&
                   take_gradient(r, err) &&
                   (!p->optim->m || (r->m = device_alloc(ctx, r->len * sizeof(float), err))) &&
                   (!p->optim->v || (r->v = device_alloc(ctx, r->len * sizeof(float), err))) &&
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

static int put_spans(struct resident *r, struct err *err)
{
    const struct optim *o = r->p.optim;
    cleanup_free struct queued_span *span = calloc((size_t)o->spans, sizeof(*span));

    if (!span)
        return err_set(err, ERR_FATAL, "no memory for %d groups of parameters", o->spans);
    for (int i = 0; i < o->spans; i++)
        span[i] = (struct queued_span){(int64_t)(o->span[i].offset + o->span[i].len), o->span[i].decay};
    device_put(r->ctx, r->span, span, (size_t)o->spans * sizeof(*span));
    return 0;
}

static uint32_t *put_items(struct resident *r, const uint32_t *items, int64_t n, struct err *err)
{
    uint32_t *p = device_alloc(r->ctx, (size_t)n * sizeof(*p), err);

    if (p)
        device_put(r->ctx, p, items, (size_t)n * sizeof(*p));
    return p;
}

int resident_check(const struct model_spec *model, const struct optimizer_spec *optimizer, int stages,
                   bool shared_out, struct err *err)
{
    const char *what = model->input.sequence ? "a model of sequences"
                       : stages > 1          ? "a model in stages"
                       : shared_out          ? "an optimiser whose state is shared out"
                       : optimizer->clip > 0 ? "a bound on the gradient's norm"
                                             : NULL;

    return what ? err_set(err, ERR_INVALID, "%s is for CPUs alone so far: expected --no_cuda", what) : 0;
}

struct resident *resident_open(const struct train_parts *p, struct err *err)
{
    if (resident_check(p->pipeline->o.spec, &p->optim->spec, p->pipeline->at.stages, p->shard.each, err))
        return NULL;
    struct resident *r = calloc(1, sizeof(*r));
    if (!r) {
        err_set(err, ERR_FATAL, "no memory for the training");
        return NULL;
    }
    r->p = *p;
    r->ctx = p->ctx;
    r->model = p->pipeline->model;
    r->len = model_len(r->model);
    r->whole = p->device_comm || p->pipeline->replicas->world == 1;
    r->labels = !loss_wants_values(&p->loss);
    r->classes = (int)p->pipeline->forward_len;
    if (model_place(r->model, r->ctx, err) || take_memory(r, err) || put_spans(r, err) ||
        resident_data_open(&r->train, r->ctx, &p->feed, err) ||
        (p->feed.subset && !(r->train_items = put_items(r, p->feed.subset, p->sampler.items, err))) ||
        device_sync(r->ctx, err)) {
        resident_close(r);
        return NULL;
    }
    resident_push(r);
    return r;
}

/* With NCCL under a deadline: a rank that is gone leaves the others in a sum that never ends. */
static int wait_for(struct resident *r, int mark, struct err *err)
{
    struct device_comm *c = r->p.device_comm;

    if (c && c->wait(c, device_mark_event(r->ctx, mark), "a step", r->p.timeout_ms, err))
        return -1;
    return device_wait(r->ctx, mark, err);
}

/* What was launched is done. Whoever waits for the device in any other way asks for this first: nothing else has a
 * deadline. */
static int settle(struct resident *r, struct err *err)
{
    return r->launched ? wait_for(r, (int)((r->launched - 1) % RESIDENT_RING), err) : 0;
}

/* Is the device there to give anything back to? Steps that nobody asks about any more may wait for a rank that is gone. */
static bool is_ours(struct resident *r)
{
    struct device_comm *c = r->p.device_comm;
    struct err ignored;

    if (!c)
        return true;
    void *last = r->launched ? device_mark_event(r->ctx, (int)((r->launched - 1) % RESIDENT_RING)) : NULL;
    return !c->lost && (!last || !c->wait(c, last, "the last steps", CLOSE_MS, &ignored));
}

static void forget_graph(struct resident *r, struct recorded *g)
{
    device_graph_free(r->ctx, g->half[0]);
    device_graph_free(r->ctx, g->half[1]);
    *g = (struct recorded){0};
}

void resident_close(struct resident *r)
{
    if (!r)
        return;
    if (!is_ours(r)) {
        free(r);
        return;
    }
    if (r->p.device_comm)
        r->grad = NULL;
    void *own[] = {r->batch.x, r->batch.labels, r->batch.values, r->batch.samples,
                   r->order,   r->dlogits,      r->grad,         r->m,
                   r->v,       r->loss,         r->sum,          r->first,
                   r->state,   r->span,         r->train_items,  r->subset_items};
    for (int i = 0; i < RESIDENT_GRAPHS; i++)
        forget_graph(r, &r->graph[i]);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        device_free(r->ctx, own[i]);
    device_shared_free(r->ctx, r->orders);
    device_shared_free(r->ctx, r->records);
    resident_data_close(&r->train, r->ctx);
    resident_data_close(&r->test, r->ctx);
    free(r);
}

void resident_push(struct resident *r)
{
    const struct optim *o = r->p.optim;

    model_push(r->model);
    if (r->m)
        device_put(r->ctx, r->m, o->m, r->len * sizeof(float));
    if (r->v)
        device_put(r->ctx, r->v, o->v, r->len * sizeof(float));
}

/* Behind a loss that is no number the device takes no more steps, and what it has is not what the counters say. Who has been
 * told may look at it. */
static int check_steps(const struct resident *r, struct err *err)
{
    for (int64_t i = r->seen; i < r->launched && !r->last.halted; i++) {
        const struct step_record *at = &r->records[i % RESIDENT_RING];
        if (at->halted)
            return err_set(err, ERR_FATAL, "the loss is %s (step %lld): try a lower --lr",
                           isinf(at->loss) ? "infinite" : "not a number",
                           (long long)(r->p.optim->step - (r->launched - 1 - i)));
    }
    return 0;
}

int resident_pull(struct resident *r, struct err *err)
{
    const struct optim *o = r->p.optim;

    return settle(r, err) || check_steps(r, err) || model_pull(r->model, err) ||
                   (r->m && device_get(r->ctx, o->m, r->m, r->len * sizeof(float), err)) ||
                   (r->v && device_get(r->ctx, o->v, r->v, r->len * sizeof(float), err))
               ? -1
               : 0;
}

int resident_order(struct resident *r, const struct sampler *s, const uint32_t *order, struct err *err)
{
    struct step_state now;
    cleanup_free uint32_t *mine = calloc((size_t)r->order_max, sizeof(*mine));

    r->order_len = sampler_len(s);
    if (!mine)
        return err_set(err, ERR_FATAL, "no memory for the order of an epoch");
    if (r->order_len > r->order_max)
        return err_set(err, ERR_INVALID, "%lld places left of an epoch, expected at most %lld",
                       (long long)r->order_len, (long long)r->order_max);
    for (int64_t i = 0; i < r->order_len; i++)
        mine[i] = sampler_at(s, order, i);
    if (settle(r, err))
        return -1;
    device_put(r->ctx, r->order, mine, (size_t)r->order_len * sizeof(*mine));
    if (device_get(r->ctx, &now, r->state, sizeof(now), err))
        return -1;
    now.own_sum = 0;
    now.mean_sum = 0;
    device_put(r->ctx, r->state, &now, sizeof(now));
    return 0;
}

int resident_sums(struct resident *r, double *own, double *mean, struct err *err)
{
    struct step_state now;

    if (settle(r, err) || device_get(r->ctx, &now, r->state, sizeof(now), err))
        return -1;
    *own = now.own_sum;
    *mean = now.mean_sum;
    return 0;
}

/* ---- one step ---- */

static void queue_gradient(struct resident *r, int rows)
{
    const struct train_parts *p = &r->p;
    const float share = 1.0f / (float)p->pipeline->at.replicas;
    const struct model_step this = {
        .seed = p->seed, .step_at = &r->state->now.step, .samples = r->batch.samples};

    queue_step_begin(r->ctx, r->state, r->orders, RESIDENT_RING, r->flags);
    queue_gather(r->ctx, &r->train.gather, &r->batch, r->train_items, r->order, &r->state->now.first, rows);
    const float *out = model_forward(r->model, r->ctx, r->batch.x, rows, &this);
    if (r->labels)
        queue_cross_entropy(r->ctx, r->loss, r->grad + r->len, r->dlogits, out, r->batch.labels, rows,
                            r->classes, p->loss.label_smoothing, share, false);
    else
        queue_mse(r->ctx, r->loss, r->grad + r->len, r->dlogits, out, r->batch.values, rows, r->classes,
                  share, false);
    model_backward(r->model, r->ctx, r->dlogits, r->grad);
}

static void queue_update(struct resident *r, int rows)
{
    const struct optim *o = r->p.optim;
    const float *loss = r->grad + r->len;
    float *values = model_device_values(r->model);

    if (o->spec.type == OPTIMIZER_SGD)
        queue_sgd(r->ctx, r->state, loss, r->span, o->spans, values, r->m, r->grad, r->len);
    else
        queue_adam(r->ctx, r->state, loss, r->span, o->spans, values, r->m, r->v, r->grad, r->len);
    queue_step_end(r->ctx, r->state, r->loss, rows, loss, r->flags, r->records, RESIDENT_RING);
}

/* Half 0: up to the gradient, and to the end where a step is whole. Half 1: the rest. */
static int queue_half(struct resident *r, int half, int rows, struct err *err)
{
    struct device_comm *c = r->p.device_comm;

    if (half == 0)
        queue_gradient(r, rows);
    if (c && c->all_reduce(c, r->grad, r->len + 1 + QUEUED_FLAGS, DEVICE_F32, device_stream(r->ctx), err))
        return -1;
    if (half == 1 || r->whole)
        queue_update(r, rows);
    return 0;
}

static struct recorded *graph_of(struct resident *r, int rows)
{
    struct recorded *least = &r->graph[0];

    for (int i = 0; i < RESIDENT_GRAPHS; i++) {
        if (r->graph[i].rows == rows)
            return &r->graph[i];
        if (r->graph[i].used < least->used)
            least = &r->graph[i];
    }
    forget_graph(r, least);
    least->rows = rows;
    return least;
}

static int run_half(struct resident *r, struct recorded *g, int half, struct err *err)
{
    if (g->used == 0)
        return queue_half(r, half, g->rows, err);
    if (!g->half[half]) {
        struct err ignored;
        if (device_graph_begin(r->ctx, err))
            return -1;
        int failed = queue_half(r, half, g->rows, err);
        g->half[half] = device_graph_end(r->ctx, failed ? &ignored : err);
        if (failed || !g->half[half])
            return -1;
    }
    return device_graph_launch(r->ctx, g->half[half], err);
}

static struct step_order order_of(const struct resident *r, int64_t step, double lr)
{
    const struct optim *o = r->p.optim;
    struct step_order order = {.first = step * r->p.batch_size, .step = o->step};

    for (int decay = 0; decay < 2; decay++) {
        if (o->spec.type == OPTIMIZER_SGD) {
            struct sgd_options sgd = optim_sgd(o, lr, decay, o->step + 1);
            order.sgd[decay] = sgd_scalars_of(&sgd);
        } else {
            struct adam_options adam = optim_adam(o, lr, decay);
            order.adam[decay] = adam_scalars_of(&adam, o->step + 1);
        }
    }
    return order;
}

/* The gradients of all ranks, by way of the process. */
static int exchange(struct resident *r, float *grad, uint32_t *flags, struct err *err)
{
    struct collectives *c = r->p.pipeline->replicas;
    size_t bytes = (r->len + 1) * sizeof(float);

    if (device_get(r->ctx, grad, r->grad, bytes, err))
        return -1;
    if (!isfinite(grad[r->len]))
        *flags |= COLLECTIVES_NONFINITE;
    if (c->all_reduce(c, grad, r->len + 1, flags, r->p.timeout_ms, err))
        return -1;
    device_put(r->ctx, r->grad, grad, bytes);
    return 0;
}

/* The records of all steps before `end`. */
static int read_records(struct resident *r, int64_t end, uint32_t *flags, struct err *err)
{
    if (end <= r->seen)
        return 0;
    if (wait_for(r, (int)((end - 1) % RESIDENT_RING), err))
        return -1;
    for (; r->seen < end; r->seen++) {
        r->last = r->records[r->seen % RESIDENT_RING];
        *flags |= r->last.flags;
        if (r->last.halted) {
            *flags |= COLLECTIVES_NONFINITE;
            r->seen++;
            break; /* the first of them is the one to tell */
        }
    }
    return 0;
}

int resident_step(struct resident *r, int64_t step, double lr, uint32_t flags, bool exact, float *grad,
                  struct train_result *ret, struct err *err)
{
    const struct train_parts *p = &r->p;
    int64_t left = r->order_len - step * p->batch_size;
    struct recorded *g = graph_of(r, (int)(left < p->batch_size ? left : p->batch_size));

    r->orders[r->launched % RESIDENT_RING] = order_of(r, step, lr);
    r->orders[r->launched % RESIDENT_RING].flags = flags;
    if (r->flags)
        flags = 0; /* what all ranks hear, this one shall hear when they do */
    /* Who is RESIDENT_LAG behind has left its slot of the ring long ago. */
    if (read_records(r, r->launched - RESIDENT_LAG, &flags, err) || run_half(r, g, 0, err) ||
        (!r->whole && (exchange(r, grad, &flags, err) || run_half(r, g, 1, err))))
        return -1;
    g->used++;
    device_mark(r->ctx, (int)(r->launched % RESIDENT_RING));
    r->launched++;
    p->optim->step++;
    if ((exact || !r->whole) && read_records(r, r->launched, &flags, err))
        return -1;
    *ret = (struct train_result){.back = (int)(r->launched - r->seen),
                                 .known = r->seen > 0,
                                 .loss = r->last.loss,
                                 .own = (double)r->last.own,
                                 .flags = flags};
    return 0;
}

/* ---- evaluation ---- */

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
    r->subset_items = put_items(r, f->subset, items, err);
    if (!r->subset_items)
        return -1;
    r->subset = f->subset;
    return 0;
}

int resident_evaluate_begin(struct resident *r, const struct feed *f, int64_t items, struct err *err)
{
    if (settle(r, err))
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
