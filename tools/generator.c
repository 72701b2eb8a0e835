/* generator.c - open a trained GPT-2 for text generation: the file gives the model's size, the preset what the file does
 * not say. */
#include "tools/generator.h"

#include "host/cpus.h"
#include "trainer/model/gpt2.h"
#include "trainer/run/threads.h"
#include "trainer/state/weights/fill.h"
#include "trainer/state/weights/gpt2_names.h"

#include <stdlib.h>

int generator_take_name(void *into, const char *text, struct err *err)
{
    struct generator_options *o = into;

    if (o->model)
        return err_set(err, ERR_INVALID, "\"%.80s\": expected one NAME", text);
    o->model = text;
    return 0;
}

void generator_close(struct generator *s)
{
    decoder_free(s->decoder);
    kctx_free(s->ctx);
    model_free(s->model);
    bpe_free(s->bpe);
    *s = (struct generator){0};
}

static int heads_of(const struct generator_options *o, const struct weights *w, int64_t width, int64_t *ret,
                    struct err *err)
{
    cleanup_arena struct arena a = {0};
    cleanup_free struct config *cfg = calloc(1, sizeof(*cfg));

    *ret = o->heads ? o->heads : w->heads ? w->heads : width / 64;
    if (!o->model || o->heads)
        return 0;
    if (!cfg)
        return err_memory(err, "no memory for a model file");
    if (config_load(o->model, &a, cfg, err))
        return -1;
    *ret = cfg->gpt2.n_head;
    return *ret ? 0 : err_set(err, ERR_INVALID, "%.80s: expected a GPT-2 (model: {gpt2: ...})", o->model);
}

/* The size is the file's. */
static int open_model(struct generator *s, const struct generator_options *o, struct err *err)
{
    cleanup_weights struct weights file = {0};
    cleanup_free struct model_spec *spec = calloc(1, sizeof(*spec));
    struct gpt2_names_size size;
    int64_t heads;

    if (!spec)
        return err_memory(err, "no memory for a model");
    if (weights_open(&file, o->init_from, err))
        return -1;
    if (gpt2_names_size(&file.list, &size, err) || heads_of(o, &file, size.width, &heads, err))
        return err_wrap(err, "%.100s", o->init_from);
    if (heads < 1 || size.width % heads)
        return err_set(err, ERR_INVALID, "--heads: %lld, expected a divisor of the width (%lld)",
                       (long long)heads, (long long)size.width);
    if (size.layers > GPT2_LAYERS_MAX || size.vocab > 1 << 24 || size.positions > LAYOUT_SIDE_MAX ||
        size.width > 1 << 20)
        return err_set(err, ERR_INVALID, "%.100s: expected at most %d layers, %d positions, a width of %d",
                       o->init_from, GPT2_LAYERS_MAX, LAYOUT_SIDE_MAX, 1 << 20);
    const struct gpt2_spec g = {.vocab = size.vocab,
                                .block_size = size.positions,
                                .n_layer = size.layers,
                                .n_head = heads,
                                .n_embd = size.width};
    gpt2_layers(&g, spec);
    s->model = model_make(spec, 1, err);
    if (!s->model)
        return -1;
    if (fill_model(&file, s->model, err))
        return err_wrap(err, "%.100s", o->init_from);
    s->decoder = decoder_make(s->model, s->ctx, (int)heads, err);
    return s->decoder ? 0 : -1;
}

int generator_open(struct generator *s, const struct generator_options *o, struct err *err)
{
    int threads = threads_per_rank(getenv("OMP_NUM_THREADS"), cpus_usable(), 1, KCTX_THREADS_MAX);
    const struct kctx_options machine = {.threads = o->threads ? (int)o->threads : threads};

    *s = (struct generator){0};
    if (!o->init_from || (o->vocab != NULL) != (o->merges != NULL))
        return err_set(err, ERR_INVALID,
                       "expected --init_from FILE, and --vocab and --merges for tokens that are not bytes "
                       "(trainer generate --help)");
    s->bpe = o->vocab ? bpe_open(o->vocab, o->merges, err) : bpe_bytes();
    if (!s->bpe || !(s->ctx = kctx_make(&machine, err)) || open_model(s, o, err))
        return -1;
    if (bpe_vocab(s->bpe) > decoder_vocab(s->decoder) || (!o->vocab && decoder_vocab(s->decoder) > 256))
        return err_set(err, ERR_INVALID, "the model has %d tokens, but %s %d%s", decoder_vocab(s->decoder),
                       o->vocab ? "the vocabulary" : "bytes are", bpe_vocab(s->bpe),
                       o->vocab ? "" : ": expected --vocab and --merges");
    return 0;
}
