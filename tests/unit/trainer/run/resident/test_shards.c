/* test_shards.c - the optimiser's state in parts on GPUs that are none, and an exchange by way of the process: the memory that
 * it takes, parts that are empty, and the weights and moments that come of it. And the memory that stages take.
 */
#include "test.h"

#include "../../../collectives/ranks.h"
#include "a_training.h"
#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "trainer/model/gpt2.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 48, SIDE = 8, PIXELS = SIDE * SIDE, BATCH = 4, STEPS = 3, CLASSES = 3, SPARE_BYTES = 64 };
enum { VOCAB = 31, TIME = 12, WINDOWS = 12, WIDE = 4096 };

/* A layer of side * side inputs: with one, the parameters fill one part. 0: a GPT-2 in bf16. Two stages: a second layer behind
 * it, of WIDE outputs. */
struct task {
    int side, stages;
    enum optimizer_type optimizer;
    double clip;
};

static uint8_t image[ITEMS * PIXELS];
static int32_t label[ITEMS];

static void make_data(void)
{
    for (int i = 0; i < ITEMS * PIXELS; i++)
        image[i] = (uint8_t)(i * 37 % 251);
    for (int i = 0; i < ITEMS; i++)
        label[i] = i % CLASSES;
}

static void make_spec(struct model_spec *s, int side, int stages)
{
    const struct gpt2_spec gpt2 = {
        .vocab = VOCAB, .block_size = TIME, .n_layer = 2, .n_head = 2, .n_embd = 16};
    struct layer_spec *l = s->layer;

    if (!side) {
        gpt2_layers(&gpt2, s);
        s->numbers = (struct model_numbers){.elsewhere = true, .element = ELEMENT_BF16};
        return;
    }
    *s = (struct model_spec){.input = {.rows = side, .cols = side, .channels = 1}, .layers = 2};
    l[0] = layer_spec_of(&layer_flatten, "");
    l[1] = layer_spec_of(&layer_linear, "d");
    l[1].option[0] = CLASSES;
    l[1].place = 1;
    if (!stages)
        return;
    l[2] = layer_spec_of(&layer_linear, "e");
    l[2].option[0] = WIDE;
    l[2].place = s->layers++;
    s->stages = stages;
    s->stage_first[1] = 2;
}

static void open_model(struct training *t, const struct task *task, struct collectives *c)
{
    struct torch_rng rng;
    struct err err = {0};

    make_spec(&t->spec, task->side, task->stages);
    t->ctx = cuda_make(0, PRECISION_F32, task->side ? ELEMENT_F32 : ELEMENT_BF16, &err);
    RANK_CHECK(t->ctx);
    const struct pipeline_options o = {.spec = &t->spec,
                                       .comm = c,
                                       .ctx = t->ctx,
                                       .batch = task->side ? BATCH : 1,
                                       .timeout_ms = RANKS_TIMEOUT_MS};
    RANK_OK(pipeline_open(&t->pipeline, &o, &err));
    torch_rng_seed(&rng, 3);
    RANK_OK(pipeline_init(&t->pipeline, &rng, &err));
}

/* Returns the bytes of the device that it takes beside its model. */
static size_t open_training(struct training *t, const struct task *task, struct collectives *c, bool parts)
{
    static const struct data_spec decode = {.stats = 1, .mean = {0.5}, .std = {0.5}};
    const struct optimizer_spec optimizer = {.type = task->optimizer,
                                             .beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .eps = 1e-8,
                                             .momentum = 0.9,
                                             .clip = task->clip};
    struct dataset set = {
        .layout = {.train_items = ITEMS, .rows = task->side, .cols = task->side, .channels = 1},
        .train = {.items = ITEMS, .x = image, .labels = label}};
    struct err err = {0};
    int rows;

    *t = (struct training){0};
    if (!task->side) {
        t->tokens = tokens_open(TK_SOURCE_DIR "/tests/golden/torch/gpt2.bin", TIME, &err);
        RANK_CHECK(t->tokens && tokens_windows(t->tokens) >= WINDOWS);
        set.layout = (struct data_layout){
            .train_items = WINDOWS, .rows = TIME, .cols = 1, .channels = 1, .steps = TIME};
        set.train = (struct data_part){.items = WINDOWS, .tokens = t->tokens};
    }
    open_model(t, task, c);
    const struct param_row *row = model_params(t->pipeline.model, &rows);
    struct shard_parts shard = shard_of(c, !parts, model_len(t->pipeline.model), RANKS_TIMEOUT_MS);
    RANK_OK(optim_make_part(&t->optim, &optimizer, row, rows, shard.begin, shard.end, &err));
    struct train_parts p = {.comm = c,
                            .ctx = t->ctx,
                            .pipeline = &t->pipeline,
                            .optim = &t->optim,
                            .shard = shard,
                            .sampler = {.items = set.train.items,
                                        .rank = t->pipeline.at.replica,
                                        .world = t->pipeline.at.replicas},
                            .batch_size = task->side ? BATCH : 1,
                            .timeout_ms = RANKS_TIMEOUT_MS,
                            .loss = {.type = LOSS_CROSS_ENTROPY}};
    feed_init(&p.feed, &set, false, NULL, &decode);
    p.feed.vocab = VOCAB;
    const size_t before = fake_cudart_bytes();
    RANK_OK(train_make(&t->train, &p, &err));
    const size_t bytes = fake_cudart_bytes() - before;
    train_epoch(&t->train, 0);
    t->train.exact = true;
    return bytes;
}

/* Moments are a part, gradients and what passes read of the weights have room for parts of one length. In bf16 the weights are
 * a part, too, beside the few that are read in f32. */
static void check_bytes(const struct collectives *c, const struct training *whole, size_t whole_bytes,
                        const struct training *parts, size_t parts_bytes)
{
    const size_t len = whole->optim.len, own = parts->optim.len;
    const size_t room = shard_len(&parts->train.p.shard);
    const size_t moments = whole->optim.v ? 2 : 1;
    const struct model_weights w = model_weights(parts->pipeline.model);
    const size_t saved = (len - own) * (moments + w.part) * sizeof(float);
    const size_t more = (room - len) * (sizeof(float) + (w.part ? 2 : 4)) + w.exact_len * sizeof(float);
    const size_t got = whole_bytes + more - parts_bytes;

    RANK_CHECK(whole_bytes + more > parts_bytes || !saved);
    RANK_CHECK(got >= saved && got <= saved + SPARE_BYTES); /* spans, of which a part may have fewer */
}

static void check_moments(const struct collectives *c, const float *part, const float *whole,
                          const struct optim *o)
{
    RANK_CHECK(!part == !whole);
    RANK_CHECK(!part || !memcmp(part, whole + o->first, o->len * sizeof(*part)));
}

/* Rank 0 reads the weights alone; who reads nothing gets nothing, but for what it hands around. */
static void check_reader(const struct collectives *c, struct training *t, const float *first)
{
    struct model *m = t->pipeline.model;
    const bool reads = c->rank == 0;
    struct err err = {0};

    RANK_OK(train_pull(&t->train, reads ? TRAIN_READS_WEIGHTS : TRAIN_READS_NOTHING, &err));
    RANK_CHECK(reads || model_weights(m).part || !memcmp(model_values(m), first, CLASSES * sizeof(*first)));
    for (size_t i = 0; t->optim.m && i < t->optim.len; i++)
        RANK_CHECK(t->optim.m[i] == 0);
}

/* All differ from rank to rank only in what they keep. */
static int body(struct collectives *c, void *arg)
{
    const struct task *task = arg;
    struct training whole, parts;
    struct err err = {0};
    float first[CLASSES];

    const size_t whole_bytes = open_training(&whole, task, c, false);
    const size_t parts_bytes = open_training(&parts, task, c, true);
    check_bytes(c, &whole, whole_bytes, &parts, parts_bytes);
    const size_t len = model_len(whole.pipeline.model);
    memcpy(first, model_values(whole.pipeline.model), sizeof(first));
    for (int step = 0; step < STEPS; step++) {
        struct train_result a, b;
        RANK_OK(train_step(&whole.train, step, 0.01, &a, &err));
        RANK_OK(train_step(&parts.train, step, 0.01, &b, &err));
        RANK_CHECK(a.loss == b.loss && isfinite(a.loss));
    }
    RANK_CHECK(task->clip > 0 ? whole.optim.grad_norm > task->clip : isnan(whole.optim.grad_norm));
    RANK_CHECK(!(task->clip > 0) ||
               fabs(whole.optim.grad_norm - parts.optim.grad_norm) < 1e-6 * whole.optim.grad_norm);
    check_reader(c, &whole, first);
    check_reader(c, &parts, first);
    const float *got = model_values(parts.pipeline.model);
    RANK_CHECK(c->rank || !memcmp(got, model_values(whole.pipeline.model), len * sizeof(float)));
    RANK_CHECK(c->rank || memcmp(got, first, sizeof(first)) != 0);
    RANK_OK(train_pull(&whole.train, TRAIN_READS_ALL, &err));
    RANK_OK(train_pull(&parts.train, TRAIN_READS_ALL, &err));
    RANK_CHECK(!memcmp(got, model_values(whole.pipeline.model), len * sizeof(float)));
    RANK_CHECK(memcmp(got, first, sizeof(first)) != 0);
    check_moments(c, parts.optim.m, whole.optim.m, &parts.optim);
    check_moments(c, parts.optim.v, whole.optim.v, &parts.optim);
    close_training(&whole);
    close_training(&parts);
    RANK_CHECK(fake_cudart_pieces() == 0);
    return 0;
}

static void a_rank_keeps_a_part(void **state)
{
    struct task rows[] = {{.side = SIDE, .optimizer = OPTIMIZER_ADAM},
                          {.side = SIDE, .optimizer = OPTIMIZER_ADAMW, .clip = 0.1},
                          {.side = SIDE, .optimizer = OPTIMIZER_SGD, .clip = 0.1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ranks_run(2 + (int)i, body, &rows[i]);
}

static void in_bf16_it_keeps_a_part_of_the_weights_too(void **state)
{
    struct task task = {.optimizer = OPTIMIZER_ADAMW, .clip = 0.1};

    (void)state;
    ranks_run(2, body, &task);
    ranks_run(3, body, &task);
}

static void a_part_may_be_empty(void **state)
{
    struct task rows[] = {{.side = 1, .optimizer = OPTIMIZER_ADAM, .clip = 0.01},
                          {.side = 1, .optimizer = OPTIMIZER_SGD}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ranks_run(3, body, &rows[i]);
}

/* Gradients of the outputs are the last stage's affair. */
static int stage_body(struct collectives *c, void *arg)
{
    const size_t outputs = (size_t)BATCH * WIDE * sizeof(float);
    struct training t;

    const size_t bytes = open_training(&t, arg, c, false);
    RANK_CHECK(pipeline_is_last(&t.pipeline) ? bytes > outputs : bytes < outputs);
    close_training(&t);
    return 0;
}

static void only_the_last_stage_keeps_gradients_of_outputs(void **state)
{
    struct task task = {.side = SIDE, .stages = 2, .optimizer = OPTIMIZER_SGD};

    (void)state;
    ranks_run(2, stage_body, &task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_last_stage_keeps_gradients_of_outputs),
        cmocka_unit_test(a_rank_keeps_a_part),
        cmocka_unit_test(in_bf16_it_keeps_a_part_of_the_weights_too),
        cmocka_unit_test(a_part_may_be_empty),
    };

    make_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
