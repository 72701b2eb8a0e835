/* decode_data.c - decode the `data:` section of a preset: the split, the normalisation, and the keys of its format. */
#include "trainer/cli/decode.h"

#include "trainer/cli/config.h"

#include <string.h>

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
        struct yaml_at item = yaml_item(&list, c, n);
        if (yaml_item_f64(&item, min, 1e6, &out[n], err))
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

static int check(const struct yaml_at *at, struct data_spec *d, struct err *err)
{
    struct err own = {0};
    const char *key = NULL;

    if (!d->format->accept(d, &key, &own))
        return 0;
    struct yaml_at member = key ? yaml_member(at, key) : *at;
    return yaml_err(&member, err, "%s", own.msg);
}

int decode_data(const struct yaml_at *root, struct config *cfg, struct err *err)
{
    static const char *const scaled[] = {"format",      "mean",      "std",          "scale",
                                         "train_items", "val_items", "val_fraction", NULL};
    static const char *const plain[] = {"format", "train_items", "val_items", "val_fraction", NULL};
    const struct shape *input = &cfg->model.input;
    struct yaml_at at = yaml_member(root, "data");
    struct data_spec *d = &cfg->data;
    int format = 0;

    if (yaml_require(root, "data", err) || yaml_require(&at, "format", err) ||
        yaml_get_choice(&at, "format", data_format_names, &format, err))
        return -1;
    *d = (struct data_spec){.format = data_formats[format],
                            .values = loss_wants_values(&cfg->loss),
                            .sequence = input->sequence,
                            .rows = input->rows,
                            .cols = input->cols,
                            .channels = input->channels};
    spec_defaults(d->format->options, d->option, d->number);
    return decode_keys(&at, d->format->scaled ? scaled : plain, d->format->options, err) ||
                   decode_normalisation(&at, d, err) || decode_split(&at, &d->split, err) ||
                   decode_options(&at, d->format->options, d->option, d->number, d->text, err) ||
                   check(&at, d, err)
               ? -1
               : 0;
}
