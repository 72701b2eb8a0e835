/* test_gpt2.c - GPT-2 against PyTorch's record (tests/golden/torch/gpt2.safetensors, made by gpt2.py there): initial weights,
 * outputs, loss, every gradient, ten steps of training. */
#include "test.h"

#include "../gpt2_golden.h"
#include "kernels/ops.h"
#include "trainer/run/session.h"

#include <math.h>
#include <string.h>

enum { BATCH = 3, TIME = 12, VOCAB = 31, STEPS = 10 };

#define GPT2_YAML                                                                                            \
    "name: small\n"                                                                                          \
    "model:\n"                                                                                               \
    "  input: {tokens: 12}\n"                                                                                \
    "  layers:\n"                                                                                            \
    "    - {type: embedding, name: transformer, vocab: 31, width: 16}\n"                                     \
    "    - {type: gpt2_block, name: transformer.h.0, heads: 2, blocks: 2, recompute: %s}\n"                  \
    "    - {type: gpt2_block, name: transformer.h.1, heads: 2, blocks: 2, recompute: %s}\n"                  \
    "    - {type: layernorm, name: transformer.ln_f}\n"                                                      \
    "    - {type: lm_head, name: lm_head, vocab: 31}\n"                                                      \
    "loss: cross_entropy\n"                                                                                  \
    "optimizer: {type: adamw, lr: 0.006, beta1: 0.9, beta2: 0.95, weight_decay: 0.1, decay: matrices, "      \
    "clip: 1.0}\n"                                                                                           \
    "schedule: {type: cosine, per: step, warmup: 3, warmup_full: last, min_lr: 0.0006}\n"                    \
    "data: {format: tokens, train: gpt2.bin}\n"                                                              \
    "defaults: {epochs: 1, batch_size: 4, micro_batches: 2, seed: 1337}\n"

static char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static void read_config(struct golden *f, bool recompute, struct config *cfg)
{
    char text[2048];
    const char *word = recompute ? "true" : "false";

    snprintf(text, sizeof(text), GPT2_YAML, word, word);
    golden_config(f, text, cfg);
}

static void assert_near(const char *what, const float *got, const float *want, size_t n, double most)
{
    double d = golden_distance(got, want, n);

    if (!(d <= most))
        fail_msg("%s: off by %g of it, expected at most %g", what, d, most);
}

static void compare_rows(const struct model *m, const float *got, const float *want, double most)
{
    const struct param_row *row = m->row;

    for (int i = 0; i < m->rows; i++)
        assert_near(row[i].name, got + row[i].offset, want + row[i].offset, row[i].len, most);
}

static void initial_weights_are_build_nanogpts(void **state)
{
    struct golden f;
    struct config cfg;
    struct err err = {0};
    struct torch_rng g;

    (void)state;
    golden_open(&f, "gpt2.safetensors");
    read_config(&f, false, &cfg);
    cleanup_model struct model *m = model_make(&cfg.model, 1, &err);
    assert_non_null(m);
    torch_rng_seed(&g, 1337);
    model_init(m, &g);
    compare_rows(m, m->values, golden_flat(&f, m, "start"), 3e-7);
    golden_close(&f);
}

struct results {
    float logits[BATCH * TIME * VOCAB];
    float *grad;
    double loss;
};

static void pass(struct golden *f, bool recompute, int threads, enum kctx_isa isa, struct results *r)
{
    struct config cfg;
    struct err err = {0};
    struct loss_result loss;
    int64_t tokens[BATCH * (TIME + 1)];
    float x[BATCH * TIME], dout[BATCH * TIME * 16];
    int32_t labels[BATCH * TIME];
    struct model_step step = {0};

    read_config(f, recompute, &cfg);
    cleanup_model struct model *m = model_make(&cfg.model, BATCH, &err);
    assert_non_null(m);
    const struct kctx_options o = {
        .isa = isa, .threads = threads, .workspace_bytes = model_workspace_bytes(m, threads)};
    cleanup_kctx struct kctx *ctx = kctx_make(&o, &err);
    assert_non_null(ctx);
    memcpy(m->values, golden_flat(f, m, "weights"), m->len * sizeof(float));
    memcpy(tokens, golden_tensor(f, "tokens", ARRAY_LEN(tokens))->data, sizeof(tokens));
    for (int i = 0; i < BATCH * TIME; i++) {
        x[i] = (float)tokens[i / TIME * (TIME + 1) + i % TIME];
        labels[i] = (int32_t)tokens[i / TIME * (TIME + 1) + i % TIME + 1];
    }
    assert_true(model_has_head(m));
    assert_int_equal(model_forward_len(m), TIME * 16);
    r->grad = arena_array(&f->a, m->len, float);
    memset(r->grad, 0xff, m->len * sizeof(float));
    golden_logits(m, ctx, model_forward(m, ctx, x, BATCH, &step), BATCH * TIME, r->logits);
    const struct head_target target = {.labels = labels, .share = 1.0F / (BATCH * TIME)};
    assert_int_equal(model_head_loss(m, ctx, &target, dout, r->grad, &loss, &err), 0);
    model_backward(m, ctx, dout, r->grad, NULL);
    r->loss = loss.sum / (BATCH * TIME);
}

static void outputs_loss_and_gradients_are_pytorchs(void **state)
{
    struct golden f;
    struct config cfg;
    struct err err = {0};
    float want[BATCH * TIME * VOCAB], loss;

    (void)state;
    golden_open(&f, "gpt2.safetensors");
    read_config(&f, false, &cfg);
    cleanup_model struct model *m = model_make(&cfg.model, 1, &err);
    assert_non_null(m);
    golden_take(&f, "logits", want, ARRAY_LEN(want));
    golden_take(&f, "loss", &loss, 1);
    for (enum kctx_isa isa = KCTX_ISA_PLAIN; isa <= KCTX_ISA_AVX512; isa++) {
        struct results r;
        if (!kctx_isa_supported(isa))
            continue;
        pass(&f, false, 1, isa, &r);
        assert_near("logits", r.logits, want, ARRAY_LEN(want), 2e-6);
        assert_true(fabs(r.loss / (double)loss - 1) < 1e-6);
        compare_rows(m, r.grad, golden_flat(&f, m, "grads"), 1e-5);
    }
    golden_close(&f);
}

static void threads_and_recomputing_change_no_bit(void **state)
{
    struct golden f;
    struct config cfg;
    struct err err = {0};
    struct results one, other;

    (void)state;
    golden_open(&f, "gpt2.safetensors");
    read_config(&f, false, &cfg);
    cleanup_model struct model *m = model_make(&cfg.model, 1, &err);
    pass(&f, false, 1, KCTX_ISA_AUTO, &one);
    for (int i = 1; i < 8; i++) {
        pass(&f, i & 1, 1 + i / 2, KCTX_ISA_AUTO, &other);
        assert_memory_equal(one.grad, other.grad, m->len * sizeof(float));
        assert_memory_equal(one.logits, other.logits, sizeof(one.logits));
        assert_true(one.loss == other.loss);
    }
    golden_close(&f);
}

static void ten_steps_are_pytorchs(void **state)
{
    struct golden f;
    struct config cfg;
    struct err err = {0};
    float losses[STEPS], norms[STEPS];

    (void)state;
    golden_open(&f, "gpt2.safetensors");
    read_config(&f, true, &cfg);
    cleanup_fclose FILE *out = fopen("/dev/null", "w");
    struct run_env env = {.get = no_environment, .clock = clock_system(), .out = out};
    cleanup_session struct session s;
    if (session_open(&s, &cfg, &env, &err))
        fail_msg("%s", err.msg);
    golden_take(&f, "losses", losses, STEPS);
    golden_take(&f, "norms", norms, STEPS);
    const struct schedule_spec schedule = optim_schedule(&cfg.schedule, 1, STEPS);
    train_epoch(&s.train, 0);
    for (int step = 0; step < STEPS; step++) {
        struct train_result r;
        double lr = optim_rate(&cfg.optimizer, &schedule, 1, 1, step);
        assert_int_equal(train_step(&s.train, step, lr, &r, &err), 0);
        if (!(fabs((double)r.loss / (double)losses[step] - 1) < 2e-6))
            fail_msg("step %d: loss %.9g, PyTorch has %.9g", step, (double)r.loss, (double)losses[step]);
        if (!(fabs(s.optim.grad_norm / (double)norms[step] - 1) < 2e-5))
            fail_msg("step %d: norm %.9g, PyTorch has %.9g", step, s.optim.grad_norm, (double)norms[step]);
    }
    /* The keys' biases change no weight of a softmax: Adam blows up what rounding makes of their gradient. */
    compare_rows(s.model, s.model->values, golden_flat(&f, s.model, "final"), 1e-3);
    golden_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_weights_are_build_nanogpts),
        cmocka_unit_test(outputs_loss_and_gradients_are_pytorchs),
        cmocka_unit_test(threads_and_recomputing_change_no_bit),
        cmocka_unit_test(ten_steps_are_pytorchs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
