/* training.c - the real step, among real processes. */
#include "training.h"

#include "test.h"

#include "trainer/run/evaluate.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIXELS = TRAINING_SIDE * TRAINING_SIDE, CLASSES = TRAINING_SIDE };

atomic_long training_allocations;

struct training training_usual(int stages, int64_t batch, int micro_batches)
{
    return (struct training){.stages = stages,
                             .batch = batch,
                             .items = 80,
                             .micro_batches = micro_batches,
                             .lr = 0.1,
                             .optimizer = &optimizer_sgd,
                             .epochs = 2,
                             .stop_step = -1,
                             .poison_rank = -1,
                             .timeout_ms = RANKS_TIMEOUT_MS};
}

struct training_shared *training_new(struct training task)
{
    struct training_shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(s != MAP_FAILED);
    s->task = task;
    return s;
}

void training_free(struct training_shared *s)
{
    munmap(s, sizeof(*s));
}

/* A bright row per class, with a little of something else on top. */
static void make_data(uint8_t *images, int32_t *labels)
{
    uint32_t x = 12345;

    for (int i = 0; i < TRAINING_ITEMS; i++) {
        labels[i] = i % CLASSES;
        for (int p = 0; p < PIXELS; p++) {
            x = x * 1664525u + 1013904223u;
            images[i * PIXELS + p] = (uint8_t)((p / TRAINING_SIDE == labels[i] ? 220u : 0u) + (x >> 27));
        }
    }
}

static struct layer_spec *add(struct model_spec *s, const struct layer_ops *ops, const char *name,
                              int64_t first, int64_t second)
{
    struct layer_spec *l = &s->layer[s->layers];

    *l = layer_spec_of(ops, name);
    l->place = s->layers++;
    if (first)
        l->option[0] = first;
    if (second)
        l->option[1] = second;
    return l;
}

/* Stages begin with a layer that has parameters; images and vectors cross the borders. */
static struct model_spec net(const struct training *task)
{
    struct model_spec s = {.input = {.rows = TRAINING_SIDE, .cols = TRAINING_SIDE, .channels = 1},
                           .stages = task->stages};

    if (task->wide) {
        add(&s, &layer_flatten, "", 0, 0);
        add(&s, &layer_linear, "a", task->wide, 0);
        s.stage_first[1] = s.layers;
        add(&s, &layer_linear, "b", 16, 0);
    } else {
        add(&s, &layer_conv2d, "a", 4, 3);
        if (task->norm)
            add(&s, &layer_batchnorm2d, "n", 0, 0);
        add(&s, &layer_relu, "", 0, 0);
        s.stage_first[1] = s.layers;
        add(&s, &layer_conv2d, "b", 6, 3);
        add(&s, &layer_relu, "", 0, 0);
        add(&s, &layer_maxpool2d, "", 2, 0);
        if (task->dropout)
            add(&s, &layer_dropout, "", 0, 0)->number[0] = 0.2;
        add(&s, &layer_flatten, "", 0, 0);
    }
    s.stage_first[2] = s.layers;
    add(&s, &layer_linear, "c", 12, 0);
    add(&s, &layer_relu, "", 0, 0);
    if (task->dropout)
        add(&s, &layer_dropout, "", 0, 0)->number[0] = 0.2;
    add(&s, &layer_linear, "d", CLASSES, 0);
    return s;
}

static int run_steps(struct train *t, const struct training *task, struct training_trace *out)
{
    struct collectives *c = t->p.pipeline->o.comm;
    int64_t steps = sampler_steps(&t->p.sampler, task->batch);
    struct train_result r = {0};

    for (int epoch = 0; epoch < task->epochs && !r.flags; epoch++) {
        train_epoch(t, epoch);
        for (int64_t step = 0; step < steps && !r.flags; step++) {
            if (out->steps == task->stop_step && c->rank == task->stop_rank)
                raise(task->stop_signal);
            if (out->steps == 2 && c->rank == task->poison_rank)
                t->p.pipeline->model->values[0] = NAN;
            if (task->trouble)
                task->trouble(c->rank, out->steps);
            const long before = training_allocations;
            if (train_step(t, step, task->lr, &r, &out->err))
                return collectives_exit_code(&out->err);
            out->allocations += training_allocations - before;
            RANK_CHECK(out->steps < TRAINING_STEPS_MAX);
            out->loss[out->steps++] = r.loss;
        }
    }
    out->flags = r.flags;
    return 0;
}

static int keep_whole(struct pipeline *p, struct training_trace *out, float *to, int late_ms)
{
    struct collectives *c = p->o.comm;
    struct model *whole;

    if (c->rank == 2)
        usleep((useconds_t)late_ms * 1000);
    if (pipeline_whole(p, &whole, &out->err))
        return -1;
    RANK_CHECK((whole != NULL) == (c->rank == 0));
    if (p->at.stages == 1)
        whole = p->model;
    if (whole) {
        out->weights = whole->len;
        RANK_CHECK(out->weights <= TRAINING_WEIGHTS_MAX);
        memcpy(to, whole->values, out->weights * sizeof(float));
    }
    return 0;
}

/* The collectives' all_reduce as an evaluation calls it: counted, and a signal at one of them. */
static struct {
    int (*all_reduce)(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                      struct err *err);
    int times, stop_at;
} asked;

static int count_and_ask(struct collectives *c, float *x, size_t n, uint32_t *flags, int64_t timeout_ms,
                         struct err *err)
{
    if (++asked.times == asked.stop_at)
        raise(SIGTERM);
    return asked.all_reduce(c, x, n, flags, timeout_ms, err);
}

static int stop_evaluation(struct train *t, const struct training *task, struct training_trace *out)
{
    struct collectives *c = t->p.pipeline->o.comm;
    struct evaluate_result seen;

    asked.all_reduce = c->all_reduce;
    asked.stop_at = c->rank == task->stop_rank ? task->evaluate_stop : -1;
    c->all_reduce = count_and_ask;
    RANK_CHECK(!evaluate(t, &t->p.feed, task->items, &seen, &out->err));
    c->all_reduce = asked.all_reduce;
    out->evaluate_stop = seen.stop;
    out->evaluate_asked = asked.times;
    return c->barrier(c, RANKS_TIMEOUT_MS, &out->err);
}

static int look_at_buffers(struct train *t, const struct training *task, struct training_trace *out)
{
    struct collectives *c = t->p.pipeline->o.comm;
    struct model *m = t->p.pipeline->model;
    struct evaluate_result seen;

    out->buffers = m->buffers_bytes;
    RANK_CHECK(out->buffers <= TRAINING_BUFFERS_MAX);
    memcpy(out->own, m->buffers, out->buffers);
    RANK_CHECK(!evaluate(t, &t->p.feed, task->items, &seen, &out->err));
    memcpy(out->shown, m->buffers, out->buffers);
    return 0;
}

static struct optimizer_spec optimizer_of(const struct training *task)
{
    struct optimizer_spec how = optimizer_spec_of(task->optimizer, 0);

    if (task->optimizer == &optimizer_sgd)
        how.number[0] = task->momentum;
    how.clip = task->clip;
    return how;
}

int training_body(struct collectives *c, void *arg)
{
    struct training_shared *shared = arg;
    const struct training *task = &shared->task;
    struct training_trace *out = &shared->trace[c->rank];
    const struct model_spec spec = net(task);
    static uint8_t images[TRAINING_ITEMS * PIXELS];
    static int32_t labels[TRAINING_ITEMS];
    const struct dataset set = {
        .layout = {.rows = TRAINING_SIDE, .cols = TRAINING_SIDE, .channels = 1, .classes = CLASSES},
        .train = {.items = TRAINING_ITEMS, .x = images, .labels = labels}};
    const struct data_spec data = {.stats = 1, .mean = {0.5}, .std = {0.5}};
    struct err err = {0};
    struct torch_rng rng;

    cleanup_stop struct stop stop = {.fd = -1};
    RANK_CHECK(!stop_open(&stop, &err));
    cleanup_kctx struct kctx *ctx = kctx_make(&(struct kctx_options){0}, &err);
    RANK_CHECK(ctx);
    const struct pipeline_options o = {.spec = &spec,
                                       .comm = c,
                                       .ctx = ctx,
                                       .batch = (int)task->batch,
                                       .micro_batches = task->micro_batches,
                                       .timeout_ms = task->timeout_ms};
    cleanup_pipeline struct pipeline pipeline = {0};
    RANK_CHECK(!pipeline_open(&pipeline, &o, &err));
    torch_rng_seed(&rng, 3);
    RANK_CHECK(!pipeline_init(&pipeline, &rng, &err));
    if (keep_whole(&pipeline, out, out->start, 0)) {
        fprintf(stderr, "rank %d: %s\n", c->rank, out->err.msg);
        return collectives_exit_code(&out->err);
    }
    const struct optimizer_spec how = optimizer_of(task);
    cleanup_optim struct optim optim = {0};
    RANK_CHECK(!optim_make(&optim, &how, pipeline.model->row, pipeline.model->rows, &err));
    struct train_parts p = {.pipeline = &pipeline,
                            .optim = &optim,
                            .stop = &stop,
                            .sampler = {.items = task->items,
                                        .rank = pipeline.at.replica,
                                        .world = pipeline.at.replicas,
                                        .shuffle = true}};
    make_data(images, labels);
    feed_init(&p.feed, &set, false, NULL, &data);
    cleanup_train struct train train = {0};
    RANK_CHECK(!train_make(&train, &p, &err));
    RANK_CHECK(!train.dlogits == !pipeline_is_last(&pipeline)); /* only the last stage takes a loss */
    out->stage_len = (int)train.grad_len;
    int rc = run_steps(&train, task, out);
    RANK_CHECK(rc || !task->evaluate_stop || !stop_evaluation(&train, task, out));
    RANK_CHECK(rc || !task->norm || !look_at_buffers(&train, task, out));
    if (!rc && keep_whole(&pipeline, out, out->end, task->late_ms))
        rc = collectives_exit_code(&out->err);
    return rc;
}

struct training_shared *training_run(int world, struct training task)
{
    struct training_shared *s = training_new(task);

    ranks_run(world, training_body, s);
    return s;
}

void training_expect(int world, struct training task, int steps, uint32_t flags)
{
    struct training_shared *s = training_run(world, task);
    const struct training_trace *sound = &s->trace[task.poison_rank == 0];

    for (int r = 0; r < world; r++) {
        const struct training_trace *t = &s->trace[r];
        assert_int_equal(t->steps, steps);
        assert_int_equal(t->flags, flags);
        if (!task.stages && r != task.poison_rank)
            assert_memory_equal(t->end, sound->end, t->weights * sizeof(float));
    }
    for (size_t i = 0; i < sound->weights && !task.stages; i++)
        assert_true(isfinite(sound->end[i]));
    training_free(s);
}
