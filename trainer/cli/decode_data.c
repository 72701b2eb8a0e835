/* decode_data.c - decode the `data:` section of a preset: the keys of its format, the split, the normalisation. */
#include "trainer/cli/decode.h"

#include "trainer/cli/config.h"
#include "trainer/model/loss.h"

#include <string.h>

enum { PATH_BYTES_MAX = 4000 };

#define COMMON_KEYS "format", "mean", "std", "scale", "train_items", "val_items", "val_fraction"

static const char *const FORMATS[] = {
    [SOURCE_IDX] = "idx", [SOURCE_SYNTHETIC] = "synthetic", [SOURCE_TOKENS] = "tokens", NULL};

static const char *const *keys_of(enum source_format format)
{
    static const char *const idx[] = {COMMON_KEYS, "dataset",      "train", "train_targets",
                                      "test",      "test_targets", NULL};
    static const char *const synthetic[] = {COMMON_KEYS, "items", "outputs", "targets", "generator", NULL};

    static const char *const tokens[] = {"format",    "train",        "val",     "train_items",
                                         "val_items", "val_fraction", "shuffle", NULL};

    switch (format) {
    case SOURCE_IDX:
        return idx;
    case SOURCE_TOKENS:
        return tokens;
    case SOURCE_SYNTHETIC:
        break;
    }
    return synthetic;
}

/* A number, or a list of one per channel. */
static int decode_stats(const struct yaml_at *at, const char *key, double min, double *out,
                        int32_t *ret_count, struct err *err)
{
    struct yaml_at list = yaml_member(at, key);
    int32_t n = 0;

    if (!list.node)
        return 0;
    if (list.node->kind != YAML_TREE_SEQUENCE) {
        *ret_count = 1;
        return yaml_get_f64(at, key, min, 1e6, out, err);
    }
    if (yaml_expect_sequence(&list, 1, DATA_CHANNELS_MAX, err))
        return -1;
    for (const struct yaml_tree *c = list.node->first; c; c = c->next, n++) {
        /* The item, as a member of a mapping with that key alone: for the range and the message. */
        struct yaml_tree item = *c;
        struct yaml_tree map = {.kind = YAML_TREE_MAPPING, .line = c->line, .first = &item};
        struct yaml_at wrapped = *at;
        item.key = key;
        item.next = NULL;
        wrapped.node = &map;
        if (yaml_get_f64(&wrapped, key, min, 1e6, &out[n], err))
            return -1;
    }
    *ret_count = n;
    return 0;
}

static int decode_normalisation(const struct yaml_at *at, struct data_spec *d, struct err *err)
{
    struct yaml_at std_at = yaml_member(at, "std");
    int32_t means = 1;
    int32_t stds = 1;

    d->std[0] = 1;
    if (decode_stats(at, "mean", -1e6, d->mean, &means, err) ||
        decode_stats(at, "std", 1e-6, d->std, &stds, err) ||
        yaml_get_f64(at, "scale", 1e-6, 1e9, &d->scale, err))
        return -1;
    if (means != stds && means != 1 && stds != 1)
        return yaml_err(&std_at, err, "expected %d numbers, as many as mean has, got %d", means, stds);
    d->stats = means > stds ? means : stds;
    for (int32_t i = means; i < d->stats; i++)
        d->mean[i] = d->mean[0];
    for (int32_t i = stds; i < d->stats; i++)
        d->std[i] = d->std[0];
    return 0;
}

static int decode_split(const struct yaml_at *at, struct split_spec *s, struct err *err)
{
    struct yaml_at fraction = yaml_member(at, "val_fraction");

    if (yaml_get_i64(at, "train_items", 1, INT32_MAX / 2, &s->train_items, err) ||
        yaml_get_i64(at, "val_items", 0, INT32_MAX / 2, &s->val_items, err) ||
        yaml_get_f64(at, "val_fraction", 0, 0.999999, &s->val_fraction, err))
        return -1;
    if (fraction.node && (s->val_items || s->train_items))
        return yaml_err(&fraction, err, "stands for train_items and val_items: give one of the two");
    return 0;
}

/* Inputs and targets come in pairs, and test data never alone. */
static int decode_files(const struct yaml_at *at, struct data_spec *d, struct err *err)
{
    if (yaml_get_str(at, "train", PATH_BYTES_MAX, &d->train, err) ||
        yaml_get_str(at, "train_targets", PATH_BYTES_MAX, &d->train_targets, err) ||
        yaml_get_str(at, "test", PATH_BYTES_MAX, &d->test, err) ||
        yaml_get_str(at, "test_targets", PATH_BYTES_MAX, &d->test_targets, err))
        return -1;
    if ((d->train_targets || d->test || d->test_targets) && yaml_require(at, "train", err))
        return -1;
    if ((d->train && yaml_require(at, "train_targets", err)) ||
        (d->test && yaml_require(at, "test_targets", err)) ||
        (d->test_targets && yaml_require(at, "test", err)))
        return -1;
    return 0;
}

static int decode_synthetic(const struct yaml_at *at, const struct shape *input, struct data_spec *d,
                            struct err *err)
{
    static const char *const rules[] = {
        [SYNTHETIC_TEACHER] = "teacher", [SYNTHETIC_UNIFORM] = "uniform", NULL};
    static const char *const generators[] = {"own", "before_weights", NULL};
    struct yaml_at targets = yaml_member(at, "targets");
    int64_t outputs = 0;
    int rule = SYNTHETIC_TEACHER;
    int generator = 0;

    if (yaml_require(at, "items", err) || yaml_get_i64(at, "items", 1, INT32_MAX / 2, &d->items, err) ||
        yaml_require(at, "outputs", err) ||
        yaml_get_i64(at, "outputs", 1, SYNTHETIC_OUTPUTS_MAX, &outputs, err) ||
        yaml_get_choice(at, "targets", rules, &rule, err) ||
        yaml_get_choice(at, "generator", generators, &generator, err))
        return -1;
    if (rule == SYNTHETIC_UNIFORM && !d->values)
        return yaml_err(&targets, err, "expected teacher, as this loss takes labels");
    d->rows = input->rows;
    d->cols = input->cols;
    d->channels = input->channels;
    d->synthetic = (struct synthetic){(enum synthetic_rule)rule, (int32_t)outputs};
    d->before_weights = generator == 1;
    return 0;
}

static int decode_idx(const struct yaml_at *at, const struct data_spec *d, int *ret_dataset, struct err *err)
{
    struct yaml_at dataset = yaml_member(at, "dataset");

    if (d->values)
        return yaml_err(at, err, "idx files hold labels, but the loss needs values as targets");
    if (dataset.node && d->train)
        return yaml_err(&dataset, err, "names files that `train` names too: give one of the two");
    return yaml_get_choice(at, "dataset", (const char *const[]){"any", "mnist", "fashion-mnist", NULL},
                           ret_dataset, err);
}

/* A sample is what the model takes at a time, and the token behind it. */
static int decode_tokens(const struct yaml_at *at, const struct shape *input, struct data_spec *d,
                         struct err *err)
{
    struct yaml_at val = yaml_member(at, "val");
    bool shuffle = true;

    if (yaml_require(at, "train", err) || yaml_get_str(at, "train", PATH_BYTES_MAX, &d->train, err) ||
        yaml_get_str(at, "val", PATH_BYTES_MAX, &d->test, err) || yaml_get_bool(at, "shuffle", &shuffle, err))
        return -1;
    if (d->test && (d->split.val_items || d->split.val_fraction > 0))
        return yaml_err(&val, err, "stands for val_items and val_fraction: give one of the two");
    if (d->values || !input->sequence)
        return yaml_err(at, err, "tokens need a model of sequences, with cross entropy");
    d->rows = input->rows;
    d->cols = 1;
    d->channels = 1;
    d->in_order = !shuffle;
    return 0;
}

int decode_data(const struct yaml_at *root, struct config *cfg, struct err *err)
{
    struct yaml_at at = yaml_member(root, "data");
    struct data_spec *d = &cfg->data;
    int format = 0;

    *d = (struct data_spec){.values = loss_wants_values(&cfg->loss)};
    if (yaml_require(root, "data", err) || yaml_require(&at, "format", err) ||
        yaml_get_choice(&at, "format", FORMATS, &format, err))
        return -1;
    d->format = (enum source_format)format;
    if (yaml_expect_mapping(&at, keys_of(d->format), err) || decode_normalisation(&at, d, err) ||
        decode_split(&at, &d->split, err))
        return -1;
    if (d->format == SOURCE_SYNTHETIC)
        return decode_synthetic(&at, &cfg->model.input, d, err);
    if (d->format == SOURCE_TOKENS)
        return decode_tokens(&at, &cfg->model.input, d, err);
    return decode_files(&at, d, err) || decode_idx(&at, d, &cfg->dataset, err) ? -1 : 0;
}
