/* idx.c - {format: idx, dataset, train, train_targets, test, test_targets}: the four files of MNIST, or pairs of any names. */
#include "trainer/data/source_state.h"

enum { DATASET, TRAIN, TRAIN_TARGETS, TEST, TEST_TARGETS };

static const char *const DATASETS[] = {
    [DATASET_ANY] = "any", [DATASET_MNIST] = "mnist", [DATASET_FASHION_MNIST] = "fashion-mnist", NULL};

static const struct spec_option OPTIONS[] = {
    [DATASET] = {"dataset", SPEC_CHOICE, .choices = DATASETS},
    [TRAIN] = {"train", SPEC_TEXT, .max = DATA_PATH_BYTES_MAX},
    [TRAIN_TARGETS] = {"train_targets", SPEC_TEXT, .max = DATA_PATH_BYTES_MAX},
    [TEST] = {"test", SPEC_TEXT, .max = DATA_PATH_BYTES_MAX},
    [TEST_TARGETS] = {"test_targets", SPEC_TEXT, .max = DATA_PATH_BYTES_MAX},
    {0},
};

/* Inputs and targets come in pairs, and test data never alone. */
static int missing(const struct data_spec *d)
{
    const char *const *t = d->text;

    if (!t[TRAIN] && (t[TRAIN_TARGETS] || t[TEST] || t[TEST_TARGETS]))
        return TRAIN;
    if (t[TRAIN] && !t[TRAIN_TARGETS])
        return TRAIN_TARGETS;
    if (!t[TEST] != !t[TEST_TARGETS])
        return t[TEST] ? TEST_TARGETS : TEST;
    return -1;
}

static int accept(struct data_spec *d, const char **ret_key, struct err *err)
{
    const int missed = missing(d);

    if (missed >= 0) {
        *ret_key = OPTIONS[missed].key;
        return err_set(err, ERR_INVALID, "is required");
    }
    if (d->values)
        return err_set(err, ERR_INVALID, "idx files hold labels, but the loss needs values as targets");
    if (d->option[DATASET] != DATASET_ANY && d->text[TRAIN]) {
        *ret_key = OPTIONS[DATASET].key;
        return err_set(err, ERR_INVALID, "names files that `train` names too: give one of the two");
    }
    d->train = d->text[TRAIN];
    d->train_targets = d->text[TRAIN_TARGETS];
    d->test = d->text[TEST];
    d->test_targets = d->text[TEST_TARGETS];
    d->dataset = (int)d->option[DATASET];
    return 0;
}

static int open_pairs(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;
    const char *const name[DATASET_PARTS] = {d->train, d->train_targets, d->test, d->test_targets};

    for (int i = 0; i < DATASET_PARTS; i++)
        if (source_path(s->o.dir, name[i], s->idx.path[i], err))
            return -1;
    if (dataset_probe_pair(&s->idx, DATASET_TRAIN_IMAGES, err))
        return -1;
    if (!d->test)
        return 0;
    return dataset_probe_pair(&s->idx, DATASET_TEST_IMAGES, err) || dataset_check_sides(&s->idx, err) ? -1
                                                                                                      : 0;
}

static int open(struct source *s, struct err *err)
{
    if (s->o.spec->train ? open_pairs(s, err) : dataset_find(s->o.dir, s->o.name, &s->idx, err))
        return -1;
    s->layout = dataset_layout(&s->idx);
    return 0;
}

static int load(const struct source *s, struct dataset *d, struct err *err)
{
    if (dataset_load(&s->idx, d, s->o.spec->train ? UINT8_MAX + 1 : DATASET_CLASSES, err))
        return -1;
    source_count_classes(d);
    return 0;
}

static bool key(const struct source *s, int64_t now_ms, struct buf *key)
{
    struct err ignored;

    if (buf_printf(key, &ignored, "%d\n", s->o.spec->train != NULL))
        return false;
    for (int i = 0; i < DATASET_PARTS; i++)
        if (!source_key_file(s->idx.path[i], now_ms, key))
            return false;
    return true;
}

const struct data_format format_idx = {
    .name = "idx",
    .about = {{"{format: idx [, dataset]}",
               "MNIST or Fashion-MNIST below --data, downloaded when missing. dataset: any, mnist, "
               "fashion-mnist."},
              {"{format: idx, train, train_targets [, test, test_targets]}",
               "Pairs of files below --data, gzip-compressed or not: images and labels of one byte."}},
    .options = OPTIONS,
    .files = true,
    .scaled = true,
    .accept = accept,
    .open = open,
    .load = load,
    .key = key,
};
