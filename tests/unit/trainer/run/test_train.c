/* test_train.c - the step among real processes: same result at any number of ranks, same bits again, stopping
 * together, no allocation. */
#include "test.h"

#include "collectives/ranks.h"
#include "sanitized.h"
#include "trainer/run/evaluate.h"
#include "trainer/run/train.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define COUNTS_ALLOCATIONS !SANITIZED

static atomic_long allocations;

#if COUNTS_ALLOCATIONS
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    allocations++;
    return __libc_calloc(n, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    allocations++;
    return __libc_memalign(align, size);
}
#endif

enum { ITEMS = 96, SIDE = 10, PIXELS = SIDE * SIDE, STEPS_MAX = 64, WEIGHTS_MAX = 8192, BUFFERS_MAX = 512 };

struct task {
    int64_t batch;
    int64_t items;
    int epochs;
    double lr;
    const struct optimizer_ops *optimizer;
    int stop_rank, stop_step, stop_signal; /* raise it there before that step (from 0); stop_step -1: never */
    int poison_rank;                       /* its weights become NaN before step 2; -1: none */
    bool dropout, norm;                    /* the network has these layers as well */
    bool wide;                             /* it has so many weights that they are summed in place */
    int evaluate_stop; /* raise SIGTERM on rank stop_rank in an evaluation, behind so many of its questions; 0: never */
};

/* What each rank saw: in memory that survives it. */
struct trace {
    int steps;
    float loss[STEPS_MAX];
    uint32_t flags;
    long allocations;
    size_t weights;
    float weight[WEIGHTS_MAX];
    size_t buffers;
    uint32_t evaluate_stop; /* what an evaluation said */
    int evaluate_asked;
    uint8_t own[BUFFERS_MAX], shown[BUFFERS_MAX]; /* before and after an evaluation */
};

struct shared {
    struct task task;
    struct trace trace[RANKS_MAX];
};

static struct shared *shared_new(struct task task)
{
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(s != MAP_FAILED);
    s->task = task;
    return s;
}

/* A bright row per class, with a little of something else on top. */
static void make_data(uint8_t *images, int32_t *labels)
{
    uint32_t x = 12345;

    for (int i = 0; i < ITEMS; i++) {
        labels[i] = i % 10;
        for (int p = 0; p < PIXELS; p++) {
            x = x * 1664525u + 1013904223u;
            images[i * PIXELS + p] = (uint8_t)((p / SIDE == labels[i] ? 220u : 0u) + (x >> 27));
        }
    }
}

static struct layer_spec *add(struct model_spec *s, const struct layer_ops *ops, const char *name)
{
    struct layer_spec *l = &s->layer[s->layers];

    *l = layer_spec_of(ops, name);
    l->place = s->layers++;
    return l;
}

static struct model_spec net(const struct task *task)
{
    struct model_spec s = {.input = {.rows = SIDE, .cols = SIDE, .channels = 1}};
    struct layer_spec *conv = add(&s, &layer_conv2d, "c1");

    conv->option[0] = 6;
    conv->option[1] = 3;
    if (task->norm)
        add(&s, &layer_batchnorm2d, "n1");
    add(&s, &layer_relu, "");
    add(&s, &layer_maxpool2d, "")->option[0] = 2;
    if (task->dropout)
        add(&s, &layer_dropout, "")->number[0] = 0.2;
    add(&s, &layer_flatten, "");
    add(&s, &layer_linear, "d1")->option[0] = task->wide ? 64 : 12;
    add(&s, &layer_relu, "");
    if (task->dropout)
        add(&s, &layer_dropout, "")->number[0] = 0.2;
    add(&s, &layer_linear, "d2")->option[0] = 10;
    return s;
}

static int run_steps(struct train *t, const struct task *task, struct trace *out)
{
    struct collectives *c = t->p.comm;
    int64_t steps = sampler_steps(&t->p.sampler, task->batch);
    struct train_result r = {0};
    struct err err = {0};

    for (int epoch = 0; epoch < task->epochs && !r.flags; epoch++) {
        train_epoch(t, epoch);
        for (int64_t step = 0; step < steps && !r.flags; step++) {
            if (out->steps == task->stop_step && c->rank == task->stop_rank)
                raise(task->stop_signal);
            if (out->steps == 2 && c->rank == task->poison_rank)
                model_values(t->p.pipeline->model)[0] = NAN;
            long before = allocations;
            RANK_CHECK(!train_step(t, step, task->lr, &r, &err));
            out->allocations += allocations - before;
            RANK_CHECK(out->steps < STEPS_MAX);
            out->loss[out->steps++] = r.loss;
        }
    }
    out->flags = r.flags;
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

static int body(struct collectives *c, void *arg)
{
    struct shared *shared = arg;
    const struct task *task = &shared->task;
    struct trace *out = &shared->trace[c->rank];
    struct model_spec spec = net(task);
    struct optimizer_spec optimizer = optimizer_spec_of(task->optimizer, 0);
    static uint8_t images[ITEMS * PIXELS];
    static int32_t labels[ITEMS];
    static const struct data_spec data = {.stats = 1, .mean = {0.5}, .std = {0.5}};
    const struct dataset set = {.layout = {.train_items = ITEMS, .rows = SIDE, .cols = SIDE, .channels = 1},
                                .train = {.items = ITEMS, .x = images, .labels = labels}};
    struct err err = {0};
    struct torch_rng rng;

    cleanup_stop struct stop stop = {.fd = -1};
    RANK_CHECK(!stop_open(&stop, &err));
    cleanup_kctx struct kctx *ctx = kctx_make(&(struct kctx_options){0}, &err);
    RANK_CHECK(ctx);
    cleanup_pipeline struct pipeline pipeline = {0};
    RANK_CHECK(!pipeline_open(
        &pipeline,
        &(struct pipeline_options){
            .spec = &spec, .comm = c, .ctx = ctx, .batch = (int)task->batch, .timeout_ms = RANKS_TIMEOUT_MS},
        &err));
    torch_rng_seed(&rng, 3);
    RANK_CHECK(!pipeline_init(&pipeline, &rng, &err));
    struct model *model = pipeline.model;
    cleanup_optim struct optim optim = {0};
    int rows;
    const struct param_row *row = model_params(model, &rows);
    RANK_CHECK(!optim_make(&optim, &optimizer, row, rows, &err));
    struct train_parts p = {
        .comm = c,
        .ctx = ctx,
        .pipeline = &pipeline,
        .optim = &optim,
        .stop = &stop,
        .sampler = {.items = task->items, .rank = c->rank, .world = c->world, .shuffle = true},
        .batch_size = task->batch,
        .timeout_ms = RANKS_TIMEOUT_MS,
    };
    make_data(images, labels);
    feed_init(&p.feed, &set, false, NULL, &data);
    cleanup_train struct train train = {0};
    RANK_CHECK(!train_make(&train, &p, &err));
    int rc = run_steps(&train, task, out);
    struct evaluate_parts part = {.comm = c,
                                  .ctx = ctx,
                                  .pipeline = &pipeline,
                                  .feed = p.feed,
                                  .items = ITEMS,
                                  .timeout_ms = RANKS_TIMEOUT_MS};
    struct evaluate_result seen;
    if (task->evaluate_stop) {
        part.stop = &stop;
        asked.all_reduce = c->all_reduce;
        asked.stop_at = c->rank == task->stop_rank ? task->evaluate_stop : -1;
        c->all_reduce = count_and_ask;
        RANK_CHECK(!evaluate(&part, &seen, &err));
        c->all_reduce = asked.all_reduce;
        out->evaluate_stop = seen.stop;
        out->evaluate_asked = asked.times;
        RANK_CHECK(!c->barrier(c, RANKS_TIMEOUT_MS, &err));
    }
    out->buffers = model_buffers_bytes(model);
    RANK_CHECK(out->buffers <= BUFFERS_MAX);
    memcpy(out->own, model_buffers(model), out->buffers);
    if (task->norm)
        RANK_CHECK(!evaluate(&part, &seen, &err));
    memcpy(out->shown, model_buffers(model), out->buffers);
    out->weights = model_len(model);
    RANK_CHECK(out->weights <= WEIGHTS_MAX);
    memcpy(out->weight, model_values(model), out->weights * sizeof(float));
    return rc;
}

static struct shared *train_with(int world, struct task task)
{
    struct shared *s = shared_new(task);

    ranks_run(world, body, s);
    return s;
}

static struct task usual(int64_t batch)
{
    return (struct task){.batch = batch,
                         .items = ITEMS,
                         .epochs = 3,
                         .lr = 0.2,
                         .optimizer = &optimizer_sgd,
                         .stop_step = -1,
                         .poison_rank = -1};
}

/* All ranks leave an evaluation before its next chunk, whichever of them has been told. */
static void an_evaluation_stops_within_a_chunk(void **state)
{
    (void)state;
    for (int world = 1; world <= 3; world++) {
        struct task task = usual(4);
        task.epochs = 0;
        task.evaluate_stop = 3;
        task.stop_rank = world - 1;
        struct shared *s = train_with(world, task);
        for (int r = 0; r < world; r++) {
            assert_int_equal(s->trace[r].evaluate_stop, COLLECTIVES_STOP_TERM);
            assert_int_equal(s->trace[r].evaluate_asked, 4);
        }
        munmap(s, sizeof(*s));
    }
}

static double distance(const struct trace *a, const struct trace *b)
{
    double error = 0;
    double square = 0;

    for (size_t i = 0; i < a->weights; i++) {
        double d = (double)a->weight[i] - (double)b->weight[i];
        error += d * d;
        square += (double)a->weight[i] * (double)a->weight[i];
    }
    return sqrt(error / square);
}

/* A global batch of 24, by 1, 2, 3 and 4 ranks. */
static void check_together(bool dropout)
{
    struct task task = usual(24);

    task.dropout = dropout;
    struct shared *one = train_with(1, task);

    assert_int_equal(one->trace[0].steps, 12);
    assert_true(dropout || one->trace[0].loss[11] < one->trace[0].loss[0] - 0.1f);
    for (int world = 2; world <= 4; world++) {
        task.batch = 24 / world;
        struct shared *many = train_with(world, task);
        for (int r = 0; r < world; r++) {
            assert_int_equal(many->trace[r].steps, 12);
            for (int i = 0; i < 12; i++)
                assert_true(fabsf(many->trace[r].loss[i] - one->trace[0].loss[i]) <=
                            2e-6f * one->trace[0].loss[i]);
            assert_true(distance(&one->trace[0], &many->trace[r]) < 2e-6);
            assert_memory_equal(many->trace[r].weight, many->trace[0].weight, sizeof(many->trace[0].weight));
        }
        munmap(many, sizeof(*many));
    }
    munmap(one, sizeof(*one));
}

static void ranks_together_are_one_process(void **state)
{
    (void)state;
    check_together(false);
}

/* Also with dropout: what is drawn for a sample does not depend on who draws it. */
static void dropout_is_the_same_on_any_rank(void **state)
{
    (void)state;
    check_together(true);
}

/* The same samples each step and a rate of 0: only what is dropped can change the loss. */
static void each_step_drops_others(void **state)
{
    (void)state;
    struct task task = usual(ITEMS);

    task.lr = 0;
    task.dropout = true;
    struct shared *s = train_with(1, task);
    const float *loss = s->trace[0].loss;
    assert_int_equal(s->trace[0].steps, 3);
    assert_true(fabsf(loss[0] - loss[1]) > 1e-4f && fabsf(loss[1] - loss[2]) > 1e-4f);
    munmap(s, sizeof(*s));
}

/* Each rank keeps its own statistics while it trains; who evaluates does it by rank 0's. */
static void running_statistics_are_those_of_rank_0(void **state)
{
    (void)state;
    struct task task = usual(8);

    task.norm = true;
    struct shared *s = train_with(3, task);
    assert_true(s->trace[0].buffers > 0);
    for (int r = 0; r < 3; r++) {
        assert_memory_equal(s->trace[r].weight, s->trace[0].weight, sizeof(s->trace[0].weight));
        assert_memory_equal(s->trace[r].shown, s->trace[0].own, s->trace[0].buffers);
        if (r)
            assert_true(memcmp(s->trace[r].own, s->trace[0].own, s->trace[0].buffers) != 0);
    }
    munmap(s, sizeof(*s));
}

static void a_repeat_has_the_same_bits(void **state)
{
    (void)state;
    for (int world = 1; world <= 3; world += 2) {
        struct task task = usual(8);
        task.optimizer = &optimizer_adam;
        task.lr = 0.01;
        task.wide = world > 1;
        struct shared *a = train_with(world, task);
        struct shared *b = train_with(world, task);
        assert_memory_equal(a->trace, b->trace, sizeof(a->trace));
        assert_true(a->trace[0].steps > 0);
        munmap(a, sizeof(*a));
        munmap(b, sizeof(*b));
    }
}

/* 50 items in batches of 16: the last one holds 2; over 3 ranks 17 each: the last one holds 1. */
static void a_tail_batch_is_smaller(void **state)
{
    (void)state;
    struct task task = usual(16);

    task.items = 50;
    task.epochs = 1;
    struct shared *one = train_with(1, task);
    struct shared *three = train_with(3, task);
    assert_int_equal(one->trace[0].steps, 4);
    assert_int_equal(three->trace[2].steps, 2);
    assert_true(isfinite(one->trace[0].loss[3]) && isfinite(three->trace[0].loss[1]));
    munmap(one, sizeof(*one));
    munmap(three, sizeof(*three));
}

static void a_signal_stops_all_after_the_same_step(void **state)
{
    (void)state;
    static const struct {
        int signal;
        uint32_t flag;
    } cases[] = {{SIGTERM, COLLECTIVES_STOP_TERM}, {SIGINT, COLLECTIVES_STOP_INT}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct task task = usual(8);
        task.stop_rank = 1;
        task.stop_step = 5;
        task.stop_signal = cases[i].signal;
        struct shared *s = train_with(3, task);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(s->trace[r].steps, 6);
            assert_int_equal(s->trace[r].flags, cases[i].flag);
            assert_memory_equal(s->trace[r].weight, s->trace[0].weight, sizeof(s->trace[0].weight));
        }
        munmap(s, sizeof(*s));
    }
}

static void a_loss_that_is_not_finite_stops_all(void **state)
{
    (void)state;
    struct task task = usual(8);

    task.poison_rank = 2;
    struct shared *s = train_with(3, task);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(s->trace[r].steps, 3);
        assert_int_equal(s->trace[r].flags, COLLECTIVES_NONFINITE);
    }
    for (size_t i = 0; i < s->trace[0].weights; i++)
        assert_true(isfinite(s->trace[0].weight[i]));
    munmap(s, sizeof(*s));
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    if (!COUNTS_ALLOCATIONS)
        skip();
    for (int world = 1; world <= 3; world++) {
        struct task task = usual(8);
        task.wide = world == 2;
        struct shared *s = train_with(world, task);
        assert_true(allocations > 0);
        assert_int_equal(s->trace[0].allocations, 0);
        assert_int_equal(s->trace[world - 1].allocations, 0);
        munmap(s, sizeof(*s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_together_are_one_process),
        cmocka_unit_test(dropout_is_the_same_on_any_rank),
        cmocka_unit_test(an_evaluation_stops_within_a_chunk),
        cmocka_unit_test(each_step_drops_others),
        cmocka_unit_test(running_statistics_are_those_of_rank_0),
        cmocka_unit_test(a_repeat_has_the_same_bits),
        cmocka_unit_test(a_tail_batch_is_smaller),
        cmocka_unit_test(a_signal_stops_all_after_the_same_step),
        cmocka_unit_test(a_loss_that_is_not_finite_stops_all),
        cmocka_unit_test(a_step_allocates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
