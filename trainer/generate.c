/* generate.c - `trainer generate`: text from a trained GPT-2. */
#include "trainer/command.h"

#include "common/cpus.h"
#include "trainer/generate/decoder.h"
#include "trainer/generate/sample.h"
#include "trainer/model/gpt2.h"
#include "trainer/text/encoder.h"
#include "trainer/threads.h"
#include "trainer/weights/fill.h"
#include "trainer/weights/gpt2_names.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { PROMPT_TOKENS_MAX = 1 << 20, TOP_K_MAX = 1 << 24 };

struct options {
    const char *model, *init_from, *prompt, *vocab, *merges;
    int64_t tokens, top_k, seed, heads, threads;
    double temperature;
    bool help;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row ROWS[] = {
    {"init_from", "FILE", OPTION_TEXT, AT(init_from),
     .help = "The weights: .safetensors or .pt of Hugging Face, nanoGPT or this program (a checkpoint's "
             "too), llm.c's .bin."},
    {"prompt", "TEXT", OPTION_TEXT, AT(prompt),
     .help = "What the text begins with. Default: " BPE_END_OF_TEXT ", or of bytes a line's end."},
    {"vocab", "FILE", OPTION_TEXT, AT(vocab),
     .help = "encoder.json (vocab.json) of the tokens. Without it they are bytes ..."},
    {"merges", "FILE", OPTION_TEXT, AT(merges), .help = "... and with it, vocab.bpe (merges.txt)."},
    {"tokens", "N", OPTION_INTEGER, AT(tokens), 1, INT32_MAX,
     .help = "Tokens to write at most; " BPE_END_OF_TEXT " ends the text before. Default 200."},
    {"temperature", "T", OPTION_NUMBER, AT(temperature), .min_number = 0, .max_number = 1000,
     .help = "Below 1 the likely becomes likelier; 0: always the likeliest. Default 1."},
    {"top_k", "N", OPTION_INTEGER, AT(top_k), 0, TOP_K_MAX,
     .help = "Choose among the N likeliest tokens; 0: among all. Default 50."},
    {"seed", "N", OPTION_INTEGER, AT(seed), 0, INT64_MAX,
     .help = "The same seed gives the same text. Default 1337."},
    {"heads", "N", OPTION_INTEGER, AT(heads), 1, 1 << 20,
     .help =
         "Heads of a block. Default: those of NAME, else llm.c's file tells, else one for 64 of the width."},
    {"threads", "N", OPTION_INTEGER, AT(threads), 1, KCTX_THREADS_MAX,
     .help = "Default: OMP_NUM_THREADS, else the CPUs this process may use."},
    {"help", NULL, OPTION_FLAG, AT(help), .help = "This text."},
};

static int take_name(void *into, const char *text, struct err *err)
{
    struct options *o = into;

    if (o->model)
        return err_set(err, ERR_INVALID, "\"%.80s\": expected one NAME", text);
    o->model = text;
    return 0;
}

/* What a text needs. */
struct writer {
    const struct options *o;
    FILE *out;
    struct bpe *bpe;
    struct model *model;
    struct kctx *ctx;
    struct decoder *decoder;
    uint16_t *token; /* all so far */
    size_t len, cap;
    float *heap; /* for top_k */
};

static void release(struct writer *w)
{
    decoder_free(w->decoder);
    kctx_free(w->ctx);
    model_free(w->model);
    bpe_free(w->bpe);
    free(w->token);
    free(w->heap);
}

static int heads_of(const struct options *o, const struct weights *w, int64_t width, int64_t *ret,
                    struct err *err)
{
    cleanup_arena struct arena a = {0};
    cleanup_free struct config *cfg = calloc(1, sizeof(*cfg));

    *ret = o->heads ? o->heads : w->heads ? w->heads : width / 64;
    if (!o->model || o->heads)
        return 0;
    if (!cfg)
        return err_set(err, ERR_FATAL, "no memory for a model file");
    if (config_load(o->model, &a, cfg, err))
        return -1;
    *ret = cfg->gpt2.n_head;
    return *ret ? 0 : err_set(err, ERR_INVALID, "%.80s: expected a GPT-2 (model: {gpt2: ...})", o->model);
}

/* The size is the file's. */
static int open_model(struct writer *w, struct err *err)
{
    cleanup_weights struct weights file = {0};
    cleanup_free struct model_spec *spec = calloc(1, sizeof(*spec));
    struct gpt2_names_size s;
    int64_t heads;

    if (!spec)
        return err_set(err, ERR_FATAL, "no memory for a model");
    if (weights_open(&file, w->o->init_from, err))
        return -1;
    if (gpt2_names_size(&file.list, &s, err) || heads_of(w->o, &file, s.width, &heads, err))
        return err_wrap(err, "%.100s", w->o->init_from);
    if (heads < 1 || s.width % heads)
        return err_set(err, ERR_INVALID, "--heads: %lld, expected a divisor of the width (%lld)",
                       (long long)heads, (long long)s.width);
    if (s.layers > GPT2_LAYERS_MAX || s.vocab > 1 << 24 || s.positions > LAYOUT_SIDE_MAX || s.width > 1 << 20)
        return err_set(err, ERR_INVALID, "%.100s: expected at most %d layers, %d positions, a width of %d",
                       w->o->init_from, GPT2_LAYERS_MAX, LAYOUT_SIDE_MAX, 1 << 20);
    const struct gpt2_spec g = {
        .vocab = s.vocab, .block_size = s.positions, .n_layer = s.layers, .n_head = heads, .n_embd = s.width};
    gpt2_layers(&g, spec);
    w->model = model_make(spec, 1, err);
    if (!w->model)
        return -1;
    if (fill_model(&file, w->model, err))
        return err_wrap(err, "%.100s", w->o->init_from);
    w->decoder = decoder_make(w->model, w->ctx, (int)heads, err);
    return w->decoder ? 0 : -1;
}

static int open_writer(struct writer *w, struct err *err)
{
    const struct options *o = w->o;
    int threads = threads_per_rank(getenv("OMP_NUM_THREADS"), cpus_usable(), 1, KCTX_THREADS_MAX);
    const struct kctx_options machine = {.threads = o->threads ? (int)o->threads : threads};

    if (!o->init_from || (o->vocab != NULL) != (o->merges != NULL))
        return err_set(err, ERR_INVALID,
                       "expected --init_from FILE, and --vocab and --merges for tokens that are no "
                       "bytes (trainer generate --help)");
    w->bpe = o->vocab ? bpe_open(o->vocab, o->merges, err) : bpe_bytes();
    if (!w->bpe || !(w->ctx = kctx_make(&machine, err)) || open_model(w, err))
        return -1;
    if (bpe_vocab(w->bpe) > decoder_vocab(w->decoder) || (!o->vocab && decoder_vocab(w->decoder) > 256))
        return err_set(err, ERR_INVALID, "the model has %d tokens, but %s %d%s", decoder_vocab(w->decoder),
                       o->vocab ? "the vocabulary" : "bytes are", bpe_vocab(w->bpe),
                       o->vocab ? "" : ": expected --vocab and --merges");
    w->heap = calloc(o->top_k ? (size_t)o->top_k : 1, sizeof(float));
    return w->heap ? 0 : err_set(err, ERR_FATAL, "no memory for the likeliest tokens");
}

static int keep(void *ctx, const uint16_t *tokens, size_t n, struct err *err)
{
    struct writer *w = ctx;

    if (n > PROMPT_TOKENS_MAX - w->len)
        return err_set(err, ERR_INVALID, "--prompt: more than %d tokens", PROMPT_TOKENS_MAX);
    if (w->len + n > w->cap) {
        w->cap = 2 * (w->len + n) + 64;
        uint16_t *more = realloc(w->token, w->cap * sizeof(*more));
        if (!more)
            return err_set(err, ERR_FATAL, "no memory for a text of %zu tokens", w->cap);
        w->token = more;
    }
    memcpy(w->token + w->len, tokens, n * sizeof(*tokens));
    w->len += n;
    return 0;
}

static int take_prompt(struct writer *w, struct err *err)
{
    const struct encoder_sink sink = {keep, w};
    cleanup_encoder struct encoder e = {0};
    const char *text = w->o->prompt;

    if (!text && bpe_end_of_text(w->bpe) < 0)
        text = "\n";
    if (encoder_make(&e, w->bpe, &sink, false, err))
        return -1;
    if (!text)
        return encoder_begin(&e, err);
    return encoder_put(&e, text, strlen(text), err) || encoder_end(&e, err) ? -1 : 0;
}

static int show(struct writer *w, int token, struct err *err)
{
    size_t len;
    const char *text = bpe_text(w->bpe, token, &len);

    if (len && (fwrite(text, 1, len, w->out) != len || fflush(w->out)))
        return err_errno(err, ERR_FATAL, errno, "cannot write the text");
    return 0;
}

/* The logits behind all tokens. Where they are more than the model's positions its later half begins anew. */
static const float *look(struct writer *w, size_t *seen)
{
    const size_t most = (size_t)decoder_positions(w->decoder);
    const float *logits = NULL;

    if ((size_t)decoder_len(w->decoder) + (w->len - *seen) > most) {
        decoder_clear(w->decoder);
        *seen = w->len - (w->len < most / 2 ? w->len : most / 2 + (most == 1));
    }
    for (; *seen < w->len; ++*seen)
        logits = decoder_next(w->decoder, w->token[*seen], *seen + 1 == w->len);
    return logits;
}

static int write_text(struct writer *w, struct err *err)
{
    const struct options *o = w->o;
    const struct sample_options how = {.temperature = o->temperature, .top_k = (int)o->top_k};
    struct torch_rng g;
    size_t seen = 0;

    torch_rng_seed(&g, (uint64_t)o->seed);
    for (size_t i = 0; o->prompt && i < w->len; i++)
        if (show(w, w->token[i], err))
            return -1;
    for (int64_t i = 0; i < o->tokens; i++) {
        const float *logits = look(w, &seen);
        /* A padded vocabulary has tokens that nobody can read. */
        int token = sample(&how, logits, bpe_vocab(w->bpe), w->heap, &g);
        uint16_t next = (uint16_t)token;
        if (token == bpe_end_of_text(w->bpe))
            break;
        if (show(w, token, err))
            return -1;
        if (w->len >= PROMPT_TOKENS_MAX / 2) { /* only the last are looked at again */
            size_t kept = (size_t)decoder_positions(w->decoder);
            kept = kept < w->len ? kept : w->len;
            memmove(w->token, w->token + w->len - kept, kept * sizeof(*w->token));
            w->len = kept;
            seen = kept;
        }
        if (keep(w, &next, 1, err))
            return -1;
    }
    fputc('\n', w->out);
    return 0;
}

static int run(const struct command *c, int argc, char *const *argv, FILE *out, struct err *err)
{
    const struct option_table table = {c->row, c->rows, take_name, NULL};
    struct options o = {.tokens = 200, .temperature = 1, .top_k = 50, .seed = 1337};
    struct writer w __attribute__((cleanup(release))) = {.o = &o, .out = out};

    if (option_parse(&table, argc, argv, &o, err))
        return -1;
    if (o.help) {
        command_help(c, out);
        return 0;
    }
    return open_writer(&w, err) || take_prompt(&w, err) || write_text(&w, err) ? -1 : 0;
}

const struct command command_generate = {
    .name = "generate",
    .synopsis = "[NAME|FILE.yaml] --init_from FILE [options]",
    .about = "Writes text by a trained GPT-2, token by token as it comes. The model's size is that of the "
             "weights; NAME or "
             "FILE.yaml, the preset or model file it was trained by, says how many heads it has.",
    .row = ROWS,
    .rows = ARRAY_LEN(ROWS),
    .main = run,
};
