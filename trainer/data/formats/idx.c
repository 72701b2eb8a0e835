/* idx.c - {format: idx, dataset, train, train_targets, test, test_targets}: the four files of MNIST, or pairs of any names. */
#include "trainer/data/source.h"

#include <inttypes.h>

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

/* Check that inputs and targets come in pairs, and test data not alone. */
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

static int probe_pair(struct idx_files *f, enum dataset_part images, struct err *err)
{
    const enum dataset_part labels = images + 1;
    const struct idx_shape *x = &f->shape[images], *y = &f->shape[labels];

    if (idx_probe(f->path[images], IDX_IMAGES, &f->shape[images], err) ||
        idx_probe(f->path[labels], IDX_LABELS, &f->shape[labels], err))
        return -1;
    if (x->items != y->items)
        return err_set(err, ERR_INVALID,
                       "%s: items: %" PRId32 " labels, expected %" PRId32 " as %s has images",
                       f->path[labels], y->items, x->items, f->path[images]);
    return 0;
}

/* Read the headers of both pairs, or of the training pair. Test images must have the size of the training
 * images. */
static int probe(struct idx_files *f, struct err *err)
{
    const struct idx_shape *train = &f->shape[DATASET_TRAIN_IMAGES], *test = &f->shape[DATASET_TEST_IMAGES];

    if (probe_pair(f, DATASET_TRAIN_IMAGES, err))
        return -1;
    if (!f->path[DATASET_TEST_IMAGES][0])
        return 0;
    if (probe_pair(f, DATASET_TEST_IMAGES, err))
        return -1;
    if (train->rows == test->rows && train->cols == test->cols)
        return 0;
    return err_set(err, ERR_INVALID,
                   "%s: %" PRId32 "x%" PRId32 " pixels, expected %" PRId32 "x%" PRId32 " as in %s",
                   f->path[DATASET_TEST_IMAGES], test->rows, test->cols, train->rows, train->cols,
                   f->path[DATASET_TRAIN_IMAGES]);
}

static int find(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;
    const char *const name[DATASET_PARTS] = {d->train, d->train_targets, d->test, d->test_targets};

    if (!d->train)
        return dataset_find(s->o.dir, (enum dataset_name)d->dataset, s->idx.path, err);
    for (int i = 0; i < DATASET_PARTS; i++)
        if (source_path(s->o.dir, name[i], s->idx.path[i], err))
            return -1;
    return 0;
}

static int open(struct source *s, struct err *err)
{
    const struct idx_shape *train = &s->idx.shape[DATASET_TRAIN_IMAGES];

    if (find(s, err) || probe(&s->idx, err))
        return -1;
    s->layout = (struct data_layout){.train_items = train->items,
                                     .test_items = s->idx.shape[DATASET_TEST_IMAGES].items,
                                     .rows = train->rows,
                                     .cols = train->cols,
                                     .channels = 1};
    return 0;
}

/* Read labels of one byte into the end of the array, then widen them to int32_t from the front. */
static int load_labels(const char *path, const struct idx_shape *shape, int32_t *labels, int classes,
                       struct err *err)
{
    uint8_t *bytes = (uint8_t *)labels + 3 * (size_t)shape->items;

    if (idx_load(path, IDX_LABELS, shape, bytes, err))
        return -1;
    for (int32_t i = 0; i < shape->items; i++) {
        int32_t label = bytes[i];
        if (label >= classes)
            return err_set(err, ERR_INVALID, "%s: label of item %" PRId32 ": %d, expected 0..%d", path, i,
                           label, classes - 1);
        labels[i] = label;
    }
    return 0;
}

/* The user's files may have more than ten classes. */
static int load(const struct source *s, struct dataset *d, struct err *err)
{
    const struct idx_files *f = &s->idx;
    const int classes = s->o.spec->train ? UINT8_MAX + 1 : DATASET_CLASSES;

    for (int i = DATASET_TRAIN_IMAGES; i < DATASET_PARTS; i += 2) {
        const struct data_part *part = i == DATASET_TRAIN_IMAGES ? &d->train : &d->test;
        if (part->items && (idx_load(f->path[i], IDX_IMAGES, &f->shape[i], part->x, err) ||
                            load_labels(f->path[i + 1], &f->shape[i + 1], part->labels, classes, err)))
            return -1;
    }
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
