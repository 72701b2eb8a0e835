/* test_transformers.c - the folder of a GPT-2's checkpoint as Hugging Face's transformers opens it: nothing is missing, and the logits
 * are ours. Needs a Python with transformers: $TK_TEST_PYTHON, else python3; skipped where there is none. */
#include "test.h"

#include "../gpt2_golden.h"
#include "common/fsutil.h"
#include "trainer/state/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, BATCH = 2 };

static const char *python(void)
{
    const char *given = getenv("TK_TEST_PYTHON");

    return given ? given : "python3";
}

static void write_file(const char *dir, const char *name, const void *data, size_t bytes)
{
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(fs_write_atomic(path, data, bytes, &err), 0);
}

static void write_checkpoint(const char *dir, struct model *m, const struct optimizer_spec *optimizer)
{
    cleanup_optim struct optim optim = {0};
    struct cursor cursor = {.epoch = 1, .items = 1, .step_samples = 1};
    double sums[2] = {0};
    struct err err;

    assert_int_equal(optim_make(&optim, optimizer, m->row, m->rows, &err), 0);
    const struct snapshot what = {.model = m, .optim = &optim, .cursor = &cursor, .sums = sums, .n_sums = 2};
    const struct manifest manifest = {.step = 1, .run_id = "run"};
    cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};
    if (ckpt_begin(&w, dir, &manifest, NULL, &err) || snapshot_write(&what, &w, &err) ||
        ckpt_commit(&w, 1, &err))
        fail_msg("%s", err.msg);
}

/* Weights that make every part work, and some sequences through them. */
static void write_logits(const char *dir, struct model *m, int vocab, int time, struct golden *g)
{
    const struct kctx_options o = {.threads = 1, .workspace_bytes = model_workspace_bytes(m, 1)};
    struct err err;
    struct torch_rng rng;
    const size_t n = (size_t)BATCH * (size_t)time;
    int64_t *tokens = arena_array(&g->a, n, int64_t);
    float *x = arena_array(&g->a, n, float), *logits = arena_array(&g->a, n * (size_t)vocab, float);
    float *more = arena_array(&g->a, m->len, float);
    cleanup_kctx struct kctx *ctx = kctx_make(&o, &err);

    assert_non_null(ctx);
    torch_rng_seed(&rng, 3);
    model_init(m, &rng);
    torch_rng_normal(&rng, 0, 0.2, more, m->len);
    for (size_t i = 0; i < m->len; i++)
        m->values[i] += more[i];
    for (size_t i = 0; i < n; i++) {
        tokens[i] = torch_rng_u32(&rng) % (uint32_t)vocab;
        x[i] = (float)tokens[i];
    }
    golden_logits(m, ctx, model_forward(m, ctx, x, BATCH, NULL), (int)n, logits);
    write_file(dir, "tokens", tokens, n * sizeof(*tokens));
    write_file(dir, "logits", logits, n * (size_t)vocab * sizeof(*logits));
}

static void a_checkpoint_opens_as_it_is(void **state)
{
    static const struct {
        int vocab, time, layers, heads, width;
    } sizes[] = {{31, 12, 2, 2, 16}, {50257, 5, 1, 1, 4}, {256, 33, 3, 5, 35}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct golden g = {0};
        struct config cfg;
        struct err err;
        char dir[] = "/tmp/transformers-XXXXXX";
        const int vocab = sizes[i].vocab, time = sizes[i].time;

        assert_non_null(mkdtemp(dir));
        golden_config(
            &g,
            arena_printf(&g.a,
                         "name: small\n"
                         "model:\n"
                         "  gpt2: {vocab: %d, block_size: %d, n_layer: %d, n_head: %d, n_embd: %d}\n"
                         "loss: cross_entropy\n"
                         "optimizer: {type: adamw, lr: 0.01}\n"
                         "data: {format: tokens, train: x}\n",
                         vocab, time, sizes[i].layers, sizes[i].heads, sizes[i].width),
            &cfg);
        cleanup_model struct model *m = model_make(&cfg.model, BATCH, &err);
        assert_non_null(m);
        write_logits(dir, m, vocab, time, &g);
        write_checkpoint(dir, m, &cfg.optimizer);
        const char *command =
            arena_printf(&g.a,
                         "HF_HUB_OFFLINE=1 '%s' " TK_SOURCE_DIR
                         "/tests/unit/trainer/state/transformers_logits.py %s/step-0000000001 %d %d && "
                         "rm -r %s",
                         python(), dir, vocab, time, dir);
        assert_int_equal(system(command), 0);
        golden_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_checkpoint_opens_as_it_is)};
    char command[400];

    snprintf(command, sizeof(command), "'%.300s' -c 'import torch, transformers' 2>/dev/null", python());
    if (system(command) != 0) {
        printf("skipped: no Python with torch and transformers (TK_TEST_PYTHON names one)\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
