/* a_gpt2.c - its parts, in the order in which they are needed. */
#include "a_gpt2.h"

#include "test.h"

#include <stdlib.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/torch"

void open_training(struct training *t, const struct task *task, bool device)
{
    static const struct data_spec decode = {.stats = 1, .mean = {0}, .std = {1}};
    const struct gpt2_spec gpt2 = {.vocab = VOCAB,
                                   .block_size = TIME,
                                   .n_layer = 2,
                                   .n_head = 2,
                                   .n_embd = 16,
                                   .recompute = task->recompute};
    struct dataset set = {
        .layout = {.train_items = task->items, .rows = TIME, .cols = 1, .channels = 1, .steps = TIME}};
    struct train_parts p = {.sampler = {.items = task->items}, .bucket_bytes = task->bucket_bytes};
    struct optimizer_spec optimizer = optimizer_spec_of(&optimizer_adamw, 0);
    struct err err = {0};

    *t = (struct training){.tokens = tokens_open(GOLDEN "/gpt2.bin", TIME, &err)};
    if (!t->tokens)
        fail_msg("%s", err.msg);
    assert_true(task->items <= tokens_windows(t->tokens));
    t->spec.gpt2 = gpt2;
    gpt2_layers(&t->spec);
    set.train = (struct data_part){.items = task->items, .tokens = t->tokens};
    feed_init(&p.feed, &set, false, NULL, &decode);
    p.feed.vocab = VOCAB;
    optimizer.number[1] = 0.95; /* beta2 */
    optimizer.weight_decay = 0.1;
    optimizer.decay_matrices_only = true;
    optimizer.clip = task->clip;
    setenv("TK_CUBLAS", task->cublas ? "on" : "off", 1);
    begin_training(t, device,
                   (struct pipeline_options){
                       .batch = task->batch, .micro_batches = task->micro, .device_comm = task->device_comm},
                   &optimizer, p);
    unsetenv("TK_CUBLAS");
}
