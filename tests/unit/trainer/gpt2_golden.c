#include "gpt2_golden.h"
#include "test.h"

#include "common/fsutil.h"
#include "kernels/ops.h"
#include "trainer/state/state_dict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char golden_bf16_yaml[] =
    "name: small\n"
    "model:\n"
    "  input: {tokens: 32}\n"
    "  layers:\n"
    "    - {type: embedding, name: transformer, vocab: 61, width: 32}\n"
    "    - {type: gpt2_block, name: transformer.h.0, heads: 4, blocks: 2}\n"
    "    - {type: gpt2_block, name: transformer.h.1, heads: 4, blocks: 2}\n"
    "    - {type: layernorm, name: transformer.ln_f}\n"
    "    - {type: lm_head, name: lm_head, vocab: 61}\n"
    "loss: cross_entropy\n"
    "optimizer: {type: adamw, lr: 0.006, beta1: 0.9, beta2: 0.95, weight_decay: 0.1, decay: matrices, clip: "
    "1.0}\n"
    "schedule: {type: cosine, per: step, warmup: 3, warmup_full: last, min_lr: 0.0006}\n"
    "data: {format: tokens, train: gpt2_bf16.bin}\n"
    "defaults: {epochs: 1, batch_size: 4, micro_batches: 2, seed: 1337}\n";

const char *golden_dir(void)
{
    const char *dir = getenv("TK_GOLDEN_DIR");

    return dir ? dir : TK_SOURCE_DIR "/tests/golden/torch";
}

void golden_open(struct golden *g, const char *name)
{
    char path[4096];
    struct err err = {0};

    *g = (struct golden){.file = BUF_INIT(1 << 20)};
    snprintf(path, sizeof(path), "%s/%s", golden_dir(), name);
    if (fs_read(path, &g->file, &err) || safetensors_parse(g->file.data, g->file.len, &g->a, &g->list, &err))
        fail_msg("%s: %s", name, err.msg);
}

void golden_close(struct golden *g)
{
    arena_release(&g->a);
    buf_release(&g->file);
}

void golden_config(struct golden *g, const char *yaml, struct config *cfg)
{
    struct err err = {0};

    if (config_decode("small.yaml", yaml, strlen(yaml), &g->a, cfg, &err))
        fail_msg("%s", err.msg);
    cfg->data_dir = golden_dir();
    cfg->resume = "never";
    cfg->save_seconds = 0;
    cfg->timeout_s = 600;
}

const struct pt_tensor *golden_tensor(const struct golden *g, const char *key, size_t len)
{
    const struct pt_tensor *t = state_dict_find(&g->list, key);

    if (!t)
        fail_msg("%s is not in the record", key);
    assert_int_equal(pt_tensor_bytes(t), len * pt_dtype_bytes(t->dtype));
    return t;
}

void golden_take(const struct golden *g, const char *key, float *to, size_t len)
{
    const struct pt_tensor *t = golden_tensor(g, key, len);

    assert_int_equal(t->dtype, PT_F32);
    memcpy(to, t->data, len * sizeof(*to));
}

double golden_number(const struct golden *g, const char *key)
{
    const struct pt_tensor *t = golden_tensor(g, key, 1);
    double d;

    assert_int_equal(t->dtype, PT_F64);
    memcpy(&d, t->data, sizeof(d));
    return d;
}

float *golden_flat(struct golden *g, const struct model *m, const char *key)
{
    float *all = arena_array(&g->a, m->len, float);
    const struct param_row *row = m->row;

    for (int i = 0; i < m->rows; i++)
        golden_take(g, arena_printf(&g->a, "%s/%s", key, row[i].name), all + row[i].offset, row[i].len);
    return all;
}

void golden_logits(const struct model *m, struct kctx *ctx, const void *in, int rows, void *out)
{
    const struct queued_params w = model_trained(m);
    const size_t element = element_bytes(device_element(ctx));
    const struct param_row *row = m->row;

    while (!strstr(row->name, "wte.weight"))
        row++;
    const struct linear_shape one = {.rows = 1, .in = (int)row->dim[1], .out = (int)row->dim[0]};
    const char *weight = w.copy ? (const char *)w.copy : (const char *)w.p;
    struct err err = {0};

    assert_int_equal(kctx_reserve(ctx, linear_workspace_bytes(&one), &err), 0);
    for (size_t r = 0; r < (size_t)rows; r++)
        ctx->ops->linear_forward(ctx, &one, (char *)out + r * (size_t)one.out * element,
                                 (const char *)in + r * (size_t)one.in * element,
                                 weight + row->offset * element, NULL, false);
}

double golden_distance(const float *got, const float *want, size_t n)
{
    double wrong = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        wrong += pow((double)got[i] - (double)want[i], 2);
        all += pow((double)want[i], 2);
    }
    return wrong == 0 ? 0 : sqrt(wrong / all);
}
