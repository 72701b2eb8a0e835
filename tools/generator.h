/* generator.h - a trained GPT-2 with its tokenizer, for commands that generate text.
 *
 * Ownership: generator_open takes, generator_close gives back, also half of it; the options' strings are borrowed meanwhile.
 * Errors:    ERR_INVALID and ERR_NOT_FOUND name the file or the option.
 */
#ifndef TK_TOOLS_GENERATOR_H
#define TK_TOOLS_GENERATOR_H

#include "tools/generate/decoder.h"
#include "tools/text/bpe.h"
#include "trainer/cli/options.h"

/* The first member of a command's options. */
struct generator_options {
    const char *model, *init_from, *vocab, *merges;
    int64_t heads, threads;
};

/* Rows of these options, for a table whose struct begins with them. */
#define GENERATOR_ROWS                                                                                       \
    {"init_from", "FILE", OPTION_TEXT, offsetof(struct generator_options, init_from),                        \
     .help = "The weights: .safetensors or .pt of Hugging Face, nanoGPT or this program (a checkpoint's "    \
             "too), llm.c's .bin."},                                                                         \
        {"vocab", "FILE", OPTION_TEXT, offsetof(struct generator_options, vocab),                            \
         .help = "encoder.json (vocab.json) of the tokens. Without it they are bytes ..."},                  \
        {"merges", "FILE", OPTION_TEXT, offsetof(struct generator_options, merges),                          \
         .help = "... and with it, vocab.bpe (merges.txt)."},                                                \
        {"heads",                                                                                            \
         "N",                                                                                                \
         OPTION_INTEGER,                                                                                     \
         offsetof(struct generator_options, heads),                                                          \
         1,                                                                                                  \
         1 << 20,                                                                                            \
         .help = "Heads of a block. Default: those of NAME, else llm.c's file tells, else one for 64 of "    \
                 "the width."},                                                                              \
    {                                                                                                        \
        "threads", "N", OPTION_INTEGER, offsetof(struct generator_options, threads), 1, KCTX_THREADS_MAX,    \
            .help = "Default: OMP_NUM_THREADS, else the CPUs this process may use."                          \
    }

struct generator {
    struct bpe *bpe;
    struct model *model;
    struct kctx *ctx;
    struct decoder *decoder;
};

int generator_open(struct generator *s, const struct generator_options *o, struct err *err) MUST_CHECK;
void generator_close(struct generator *s);

/* The command's one word: the preset or model file. */
int generator_take_name(void *into, const char *text, struct err *err);

#endif
