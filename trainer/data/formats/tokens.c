/* tokens.c - {format: tokens, train, val, shuffle}: windows of token files, which are mapped and read in each
 * step. */
#include "trainer/data/source.h"

#include <string.h>

enum { TRAIN, VAL, SHUFFLE };

static const struct spec_option OPTIONS[] = {
    [TRAIN] = {"train", SPEC_TEXT, .max = DATA_PATH_BYTES_MAX, .required = true},
    [VAL] = {"val", SPEC_TEXT, .max = DATA_PATH_BYTES_MAX},
    [SHUFFLE] = {"shuffle", SPEC_FLAG, .fallback = 1},
    {0},
};

/* A sample is the model's input length plus the next token. */
static int accept(struct data_spec *d, const char **ret_key, struct err *err)
{
    d->train = d->text[TRAIN];
    d->test = d->text[VAL];
    d->in_order = !d->option[SHUFFLE];
    if (d->test && (d->split.val_items || d->split.val_fraction > 0)) {
        *ret_key = OPTIONS[VAL].key;
        return err_set(err, ERR_INVALID, "replaces val_items and val_fraction: give only one of them");
    }
    if (d->values || !d->sequence)
        return err_set(err, ERR_INVALID, "tokens need a model of sequences, with cross entropy");
    return 0;
}

/* Escape the folder's name for a pattern. */
static int escape(const char *folder, char out[static PATH_MAX], struct err *err)
{
    size_t n = 0;

    for (const char *p = folder; *p && n < PATH_MAX - 2; p++) {
        if (strchr("*?[\\", *p))
            out[n++] = '\\';
        out[n++] = *p;
    }
    out[n] = '\0';
    return n < PATH_MAX - 2 ? 0 : err_set(err, ERR_INVALID, "%.60s...: path too long", folder);
}

static int open(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;
    const char *const name[SOURCE_PARTS] = {[SOURCE_TRAIN] = d->train, [SOURCE_TEST] = d->test};
    char dir[PATH_MAX], path[PATH_MAX];

    if (escape(s->o.dir, dir, err))
        return -1;
    for (int p = 0; p < SOURCE_PARTS; p++)
        if (source_path(dir, name[p], path, err) ||
            (path[0] && !(s->tokens[p] = tokens_open(path, d->rows, err))))
            return -1;
    s->layout = (struct data_layout){.train_items = tokens_windows(s->tokens[SOURCE_TRAIN]),
                                     .test_items =
                                         s->tokens[SOURCE_TEST] ? tokens_windows(s->tokens[SOURCE_TEST]) : 0,
                                     .rows = d->rows,
                                     .cols = 1,
                                     .channels = 1,
                                     .steps = d->rows};
    return 0;
}

static int load(const struct source *s, struct dataset *d, struct err *err)
{
    (void)err;
    d->train.tokens = s->tokens[SOURCE_TRAIN];
    d->test.tokens = s->tokens[SOURCE_TEST];
    d->layout.classes = tokens_vocab(d->train.tokens);
    return 0;
}

const struct data_format format_tokens = {
    .name = "tokens",
    .about =
        {{"{format: tokens, train [, val, shuffle, ...]}",
          "text as numbers, for models of sequences: patterns of files, in each of which windows of the "
          "model's length are samples. llm.c's shards (*.bin), uint16 alone (*.bin as nanoGPT's, *.npy), or "
          "any other files as bytes, a token 0..255 each. val (or val_items, val_fraction) validates."}},
    .options = OPTIONS,
    .files = true,
    .accept = accept,
    .open = open,
    .load = load,
};
