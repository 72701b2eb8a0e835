/* a_gpt2.c - its parts, in the order in which they are needed. */
#include "a_gpt2.h"

#include "test.h"

#include "kernels/cuda/cuda.h"

#include <stdlib.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/torch"

static void open_parts(struct training *t, const struct task *task, const struct optimizer_spec *optimizer)
{
    static const struct data_spec decode = {.stats = 1, .mean = {0}, .std = {1}};
    struct dataset set = {.layout = {.train_items = task->items, .rows = TIME, .cols = 1, .channels = 1}};
    struct torch_rng rng;
    struct err err = {0};
    int rows;

    set.layout.steps = TIME;
    set.train = (struct data_part){.items = task->items, .tokens = t->tokens};
    torch_rng_seed(&rng, 3);
    assert_int_equal(pipeline_init(&t->pipeline, &rng, &err), 0);
    const struct param_row *row = model_params(t->pipeline.model, &rows);
    assert_int_equal(optim_make(&t->optim, optimizer, row, rows, &err), 0);
    struct train_parts p = {.comm = t->comm,
                            .ctx = t->ctx,
                            .pipeline = &t->pipeline,
                            .optim = &t->optim,
                            .sampler = {.items = task->items, .world = 1, .shuffle = true},
                            .batch_size = task->batch,
                            .device_comm = task->device_comm,
                            .timeout_ms = TIMEOUT_MS,
                            .bucket_bytes = task->bucket_bytes,
                            .loss = {.type = LOSS_CROSS_ENTROPY},
                            .seed = 77};
    feed_init(&p.feed, &set, false, NULL, &decode);
    p.feed.vocab = VOCAB;
    begin_training(t, &p, task->items - 1);
}

void open_training(struct training *t, const struct task *task, bool device)
{
    const struct gpt2_spec gpt2 = {.vocab = VOCAB,
                                   .block_size = TIME,
                                   .n_layer = 2,
                                   .n_head = 2,
                                   .n_embd = 16,
                                   .recompute = task->recompute};
    struct optimizer_spec optimizer = optimizer_spec_of(&optimizer_adamw, 0);
    struct err err = {0};

    *t = (struct training){0};
    setenv("TK_CUBLAS", task->cublas ? "on" : "off", 1);
    gpt2_layers(&gpt2, &t->spec);
    t->comm = collectives_open(&(struct collectives_config){.world = 1, .local_world = 1}, TIMEOUT_MS, &err);
    t->ctx =
        device ? cuda_make(0, PRECISION_F32, ELEMENT_F32, &err) : kctx_make(&(struct kctx_options){0}, &err);
    unsetenv("TK_CUBLAS");
    t->tokens = tokens_open(GOLDEN "/gpt2.bin", TIME, &err);
    const struct pipeline_options o = {.spec = &t->spec,
                                       .comm = t->comm,
                                       .ctx = t->ctx,
                                       .batch = task->batch,
                                       .micro_batches = task->micro,
                                       .timeout_ms = TIMEOUT_MS};
    if (!t->comm || !t->ctx || !t->tokens || pipeline_open(&t->pipeline, &o, &err))
        fail_msg("%s", err.msg);
    assert_true(task->items <= tokens_windows(t->tokens));
    optimizer.number[1] = 0.95; /* beta2 */
    optimizer.weight_decay = 0.1;
    optimizer.decay_matrices_only = true;
    optimizer.clip = task->clip;
    open_parts(t, task, &optimizer);
}
