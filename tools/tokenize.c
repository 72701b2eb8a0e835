/* tokenize.c - `trainer tokenize`: encode text files as shards of tokens. */
#include "tools/tools.h"

#include "common/text.h"
#include "tools/text/encoder.h"
#include "tools/text/shards.h"
#include "trainer/data/gzfile.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum { FILES_MAX = 65536, BLOCK = 1 << 16 };

struct options {
    const char *output, *vocab, *merges;
    bool bytes, marks, help;
    int64_t shard_tokens, val_tokens;
    const char **file;
    int files;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row ROWS[] = {
    {"output", "PREFIX", OPTION_TEXT, AT(output),
     .help = "Write PREFIX_000000.bin, PREFIX_000001.bin, ...: llm.c's shards. Files of such names must not "
             "be there."},
    {"vocab", "FILE", OPTION_TEXT, AT(vocab),
     .help = "GPT-2's byte-pair encoding by encoder.json (vocab.json) ..."},
    {"merges", "FILE", OPTION_TEXT, AT(merges), .help = "... and vocab.bpe (merges.txt)."},
    {"bytes", NULL, OPTION_FLAG, AT(bytes),
     .help = "Every byte is a token, 0..255, and nothing stands between files. (To train on bytes no shards "
             "are needed: "
             "a preset's data may name text files.)"},
    {"marks", NULL, OPTION_FLAG, AT(marks),
     .help = "The text " BPE_END_OF_TEXT
             " in a file ends a document and begins another. Without it, it is text."},
    {"shard_tokens", "N", OPTION_INTEGER, AT(shard_tokens), 1, TOKENS_SHARD_MAX,
     .help = "Tokens in a shard; the last has fewer. Default 100000000."},
    {"val_tokens", "N", OPTION_INTEGER, AT(val_tokens), 1, INT64_MAX,
     .help = "The first N tokens go to PREFIX_val_*.bin, all others to PREFIX_train_*.bin."},
    {"help", NULL, OPTION_FLAG, AT(help), .help = "This text."},
};

static int add_file(void *into, const char *text, struct err *err)
{
    struct options *o = into;

    if (o->files == FILES_MAX)
        return err_set(err, ERR_INVALID, "more than %d files", FILES_MAX);
    o->file[o->files++] = text;
    return 0;
}

static int check(const struct options *o, struct err *err)
{
    if (!o->files)
        return err_set(err, ERR_INVALID, "no file: expected FILE... (trainer tokenize --help)");
    if (!o->output)
        return err_set(err, ERR_INVALID, "--output: is required");
    if (o->bytes ? o->vocab || o->merges || o->marks : !o->vocab || !o->merges)
        return err_set(err, ERR_INVALID, "expected --vocab with --merges, or --bytes alone");
    return 0;
}

static int to_shards(void *ctx, const uint16_t *tokens, size_t n, struct err *err)
{
    return shards_put(ctx, tokens, n, err);
}

static int tokenize_file(struct encoder *e, const char *path, struct err *err)
{
    cleanup_gzfile struct gzfile *g = gzfile_open(path, err);
    uint8_t block[BLOCK];
    size_t len = BLOCK;
    bool first = true;

    if (!g || encoder_begin(e, err))
        return -1;
    for (; len == BLOCK; first = false) {
        int mark = gzfile_read(g, block, BLOCK, &len, err) ? -1 : first ? text_mark(block, len, err) : 0;
        if (mark < 0 || encoder_put(e, block + mark, len - (size_t)mark, err))
            return -1;
    }
    return encoder_end(e, err);
}

static int tokenize(const struct options *o, FILE *out, struct err *err)
{
    cleanup_bpe struct bpe *b = o->bytes ? bpe_bytes() : bpe_open(o->vocab, o->merges, err);
    cleanup_encoder struct encoder e = {0};
    cleanup_shards struct shards s = {.file = {.fd = -1}};
    const struct shards_options so = {o->output, o->shard_tokens, o->val_tokens};
    const struct encoder_sink sink = {to_shards, &s};

    if (!b || encoder_make(&e, b, &sink, o->marks, err) || shards_make(&s, &so, err))
        return -1;
    for (int i = 0; i < o->files; i++)
        if (tokenize_file(&e, o->file[i], err))
            return err_wrap(err, "%.100s", o->file[i]);
    if (!e.count)
        return err_set(err, ERR_INVALID, "%.100s%s: no token in it", o->file[0], o->files > 1 ? ", ..." : "");
    if (shards_end(&s, err))
        return -1;
    fprintf(out,
            "%d file%s, %" PRId64 " bytes: %" PRId64 " tokens of %d in %" PRId64 " shard%s, the last %s\n",
            o->files, o->files == 1 ? "" : "s", e.bytes, e.count, bpe_vocab(b), s.files,
            s.files == 1 ? "" : "s", s.last);
    return 0;
}

static int run(const struct command *c, int argc, char *const *argv, FILE *out, struct err *err)
{
    const struct option_table table = {c->row, c->rows, c->name, add_file, NULL};
    struct options o = {.shard_tokens = 100000000};
    cleanup_free const char **file = calloc((size_t)argc + 1, sizeof(*file));

    if (!file)
        return err_memory(err, "no memory for %d arguments", argc);
    o.file = file;
    if (option_parse(&table, argc, argv, &o, err))
        return -1;
    if (o.help) {
        command_help(c, out);
        return 0;
    }
    return check(&o, err) || tokenize(&o, out, err) ? -1 : 0;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .synopsis = "FILE... --output PREFIX [options]",
    .about = "Turns text into shards of tokens for `data: {format: tokens}`. Each FILE, gzip-compressed or "
             "not, is a "
             "document; " BPE_END_OF_TEXT
             " stands before each. Tokens are those of GPT-2's own encoder for the same "
             "vocabulary; bytes that are not UTF-8 are kept. Memory does not grow with the files.",
    .row = ROWS,
    .rows = ARRAY_LEN(ROWS),
    .main = run,
};
