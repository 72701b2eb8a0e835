/* generate.c - `trainer generate`: print text that a trained GPT-2 generates from a prompt. */
#include "tools/tools.h"

#include "tools/generate/sample.h"
#include "tools/generator.h"
#include "tools/text/encoder.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT_TOKENS_MAX = 1 << 20, TOP_K_MAX = 1 << 24 };

struct options {
    struct generator_options generator; /* first */
    const char *prompt;
    int64_t tokens, top_k, seed;
    double temperature;
    bool help;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row ROWS[] = {
    GENERATOR_ROWS,
    {"prompt", "TEXT", OPTION_WORDS, AT(prompt),
     .help = "What the text begins with. Default, or when it is empty: " BPE_END_OF_TEXT
             ", or of bytes a line's end."},
    {"tokens", "N", OPTION_INTEGER, AT(tokens), 1, INT32_MAX,
     .help = "Tokens to write at most; " BPE_END_OF_TEXT " ends the text before. Default 200."},
    {"temperature", "T", OPTION_NUMBER, AT(temperature), .min_number = 0, .max_number = 1000,
     .help = "Below 1 the likely becomes likelier; 0: always the likeliest. Default 1."},
    {"top_k", "N", OPTION_INTEGER, AT(top_k), 0, TOP_K_MAX,
     .help = "Choose among the N likeliest tokens; 0: among all. Default 50."},
    {"seed", "N", OPTION_INTEGER, AT(seed), 0, INT64_MAX,
     .help = "The same seed gives the same text. Default 1337."},
    {"help", NULL, OPTION_FLAG, AT(help), .help = "This text."},
};

/* What a text needs. */
struct writer {
    const struct options *o;
    FILE *out;
    struct generator generator;
    uint16_t *token; /* all so far */
    size_t len, cap;
    float *heap; /* for top_k */
};

static void release(struct writer *w)
{
    generator_close(&w->generator);
    free(w->token);
    free(w->heap);
}

static int open_writer(struct writer *w, struct err *err)
{
    const int64_t k = w->o->top_k;

    if (generator_open(&w->generator, &w->o->generator, err))
        return -1;
    w->heap = calloc(k ? (size_t)k : 1, sizeof(float));
    return w->heap ? 0 : err_memory(err, "no memory for the likeliest tokens");
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
            return err_memory(err, "no memory for a text of %zu tokens", w->cap);
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

    if (text && !text[0])
        text = NULL;
    if (!text && bpe_end_of_text(w->generator.bpe) < 0)
        text = "\n";
    if (encoder_make(&e, w->generator.bpe, &sink, false, err))
        return -1;
    if (!text)
        return encoder_begin(&e, err);
    return encoder_put(&e, text, strlen(text), err) || encoder_end(&e, err) ? -1 : 0;
}

static int show(struct writer *w, int token, struct err *err)
{
    size_t len;
    const char *text = bpe_text(w->generator.bpe, token, &len);

    if (len && (fwrite(text, 1, len, w->out) != len || fflush(w->out)))
        return err_errno(err, ERR_FATAL, errno, "cannot write the text");
    return 0;
}

/* The logits behind all tokens. Where they are more than the model's positions its later half begins anew. */
static const float *look(struct writer *w, size_t *seen)
{
    struct decoder *d = w->generator.decoder;
    const size_t most = (size_t)decoder_positions(d);

    if ((size_t)decoder_len(d) + (w->len - *seen) > most) {
        decoder_rewind(d, 0);
        *seen = w->len - (w->len < most / 2 ? w->len : most / 2 + (most == 1));
    }
    const int more = (int)(w->len - *seen);
    decoder_take(d, w->token + *seen, more);
    *seen = w->len;
    return decoder_logits(d, more - 1, 1);
}

/* Weights that are no numbers give logits that are none. */
static int check_logits(const float *logits, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(logits[i]))
            return err_set(err, ERR_INVALID,
                           "--init_from: the model's output is not finite: its weights are too large or "
                           "not numbers");
    return 0;
}

static int write_text(struct writer *w, struct err *err)
{
    const struct options *o = w->o;
    const struct sample_options how = {.temperature = o->temperature, .top_k = (int)o->top_k};
    struct torch_rng g;
    size_t seen = 0;

    torch_rng_seed(&g, (uint64_t)o->seed);
    for (size_t i = 0; o->prompt && o->prompt[0] && i < w->len; i++)
        if (show(w, w->token[i], err))
            return -1;
    for (int64_t i = 0; i < o->tokens; i++) {
        const float *logits = look(w, &seen);
        /* A padded vocabulary has tokens that nobody can read. */
        if (check_logits(logits, bpe_vocab(w->generator.bpe), err))
            return -1;
        int token = sample(&how, logits, bpe_vocab(w->generator.bpe), w->heap, &g);
        uint16_t next = (uint16_t)token;
        if (token == bpe_end_of_text(w->generator.bpe))
            break;
        if (show(w, token, err))
            return -1;
        if (w->len >= PROMPT_TOKENS_MAX / 2) { /* only the last are looked at again */
            size_t kept = (size_t)decoder_positions(w->generator.decoder);
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
    const struct option_table table = {c->row, c->rows, c->name, generator_take_name, NULL};
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
