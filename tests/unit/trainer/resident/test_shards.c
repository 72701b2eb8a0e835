/* test_shards.c - the optimiser's state in parts on GPUs that are none, and an exchange by way of the process: the memory that
 * it takes, parts that are empty, and the weights and moments that come of it.
 */
#include "test.h"

#include "../collectives/ranks.h"
#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "trainer/data/tokens.h"
#include "trainer/model/gpt2.h"
#include "trainer/resident.h"
#include "trainer/train.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 48, SIDE = 8, PIXELS = SIDE * SIDE, BATCH = 4, STEPS = 3, CLASSES = 3, SPARE_BYTES = 64 };
enum { VOCAB = 31, TIME = 12, WINDOWS = 12 };

/* A layer of side * side inputs: with one, the parameters fill one part. 0: a GPT-2 in bf16. */
struct task {
    int side;
    enum optimizer_type optimizer;
    double clip;
};

struct training {
    struct kctx *ctx;
    struct tokens *tokens;
    struct model_spec spec;
    struct pipeline pipeline;
    struct optim optim;
    struct train train;
    size_t device_bytes;
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

static void make_spec(struct model_spec *s, int side)
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
}

static void open_model(struct training *t, const struct task *task, struct collectives *c)
{
    struct torch_rng rng;
    struct err err = {0};

    make_spec(&t->spec, task->side);
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

static void open_training(struct training *t, const struct task *task, struct collectives *c, bool parts)
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
                            .sampler = {.items = set.train.items, .rank = c->rank, .world = c->world},
                            .batch_size = task->side ? BATCH : 1,
                            .timeout_ms = RANKS_TIMEOUT_MS,
                            .loss = {.type = LOSS_CROSS_ENTROPY}};
    feed_init(&p.feed, &set, false, NULL, &decode);
    p.feed.vocab = VOCAB;
    const size_t before = fake_cudart_bytes();
    RANK_OK(train_make(&t->train, &p, &err));
    t->device_bytes = fake_cudart_bytes() - before;
    train_epoch(&t->train, 0);
    t->train.exact = true;
}

static void close_training(struct training *t)
{
    train_release(&t->train);
    optim_release(&t->optim);
    pipeline_release(&t->pipeline);
    tokens_free(t->tokens);
    kctx_free(t->ctx);
}

/* Moments are a part, gradients and what passes read of the weights have room for parts of one length. In bf16 the weights are
 * a part, too, beside the few that are read in f32. */
static void check_bytes(const struct collectives *c, const struct training *whole,
                        const struct training *parts)
{
    const size_t len = whole->optim.len, own = parts->optim.len;
    const size_t room = shard_len(&parts->train.p.shard);
    const size_t moments = whole->optim.v ? 2 : 1;
    const struct model_weights w = model_weights(parts->pipeline.model);
    const size_t saved = (len - own) * (moments + w.part) * sizeof(float);
    const size_t more = (room - len) * (sizeof(float) + (w.part ? 2 : 4)) + w.exact_len * sizeof(float);
    const size_t got = whole->device_bytes + more - parts->device_bytes;

    RANK_CHECK(whole->device_bytes + more > parts->device_bytes || !saved);
    RANK_CHECK(got >= saved && got <= saved + SPARE_BYTES); /* spans, of which a part may have fewer */
}

static void check_moments(const struct collectives *c, const float *part, const float *whole,
                          const struct optim *o)
{
    RANK_CHECK(!part == !whole);
    RANK_CHECK(!part || !memcmp(part, whole + o->first, o->len * sizeof(*part)));
}

/* All differ from rank to rank only in what they keep. */
static int body(struct collectives *c, void *arg)
{
    const struct task *task = arg;
    struct training whole, parts;
    struct err err = {0};
    float first[CLASSES];

    open_training(&whole, task, c, false);
    open_training(&parts, task, c, true);
    check_bytes(c, &whole, &parts);
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
    RANK_OK(train_pull(&whole.train, &err));
    RANK_OK(train_pull(&parts.train, &err));
    const float *got = model_values(parts.pipeline.model);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_keeps_a_part),
        cmocka_unit_test(in_bf16_it_keeps_a_part_of_the_weights_too),
        cmocka_unit_test(a_part_may_be_empty),
    };

    make_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
