/* source.c - one way in for every format. */
#include "trainer/data/source.h"

#include "trainer/data/csv.h"
#include "trainer/data/npy.h"
#include "trainer/data/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN, TEST, PARTS };

/* What is known of a part's files; a path of "" is none. */
struct files {
    char x[PATH_MAX];
    char y[PATH_MAX];
    struct csv csv;
    struct npy npy_x, npy_y;
    struct tokens *tokens;
};

struct source {
    struct source_options o;
    struct data_layout layout;
    struct dataset_files idx;
    struct files part[PARTS];
};

/* Files of tokens are named by a pattern: in it the folder stands for itself. */
static int path_of(const struct source *s, const char *name, char out[static PATH_MAX], struct err *err)
{
    char dir[PATH_MAX] = "";
    size_t len = 0;

    if (!name)
        return 0;
    if (name[0] != '/')
        len = s->o.spec->format == SOURCE_TOKENS ? tokens_pattern_of(s->o.dir, dir, sizeof(dir))
                                                 : (size_t)snprintf(dir, sizeof(dir), "%s", s->o.dir);
    if (len < sizeof(dir))
        len = (size_t)snprintf(out, PATH_MAX, "%s%s%s", dir, name[0] == '/' ? "" : "/", name);
    return len < PATH_MAX ? 0 : err_set(err, ERR_INVALID, "%.60s...: path too long", name);
}

static int paths(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;

    return path_of(s, d->train, s->part[TRAIN].x, err) ||
                   path_of(s, d->train_targets, s->part[TRAIN].y, err) ||
                   path_of(s, d->test, s->part[TEST].x, err) ||
                   path_of(s, d->test_targets, s->part[TEST].y, err)
               ? -1
               : 0;
}

/* ---- IDX ---- */

static int open_idx(struct source *s, struct err *err)
{
    if (!s->o.spec->train) {
        if (dataset_find(s->o.dir, s->o.name, &s->idx, err))
            return -1;
    } else {
        for (int p = 0; p < PARTS; p++) {
            memcpy(s->idx.path[2 * p], s->part[p].x, PATH_MAX);
            memcpy(s->idx.path[2 * p + 1], s->part[p].y, PATH_MAX);
            if (s->part[p].x[0] && dataset_probe_pair(&s->idx, (enum dataset_part)(2 * p), err))
                return -1;
        }
        if (s->part[TEST].x[0] && dataset_check_sides(&s->idx, err))
            return -1;
    }
    s->layout = dataset_layout(&s->idx);
    return 0;
}

/* ---- CSV ---- */

static int32_t first_column(const struct data_spec *d, const struct csv *c)
{
    return d->target < 0 ? c->columns + d->target : d->target;
}

static int open_csv(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;
    const struct csv *c = &s->part[TRAIN].csv;

    for (int p = 0; p < PARTS; p++)
        if (s->part[p].x[0] && csv_probe(s->part[p].x, d->header, &s->part[p].csv, err))
            return -1;
    int32_t first = first_column(d, c);
    if (first < 0 || first + d->columns > c->columns || d->columns == c->columns)
        return err_set(err, ERR_INVALID, "%s: columns: %d, expected %d of targets from column %d, and inputs",
                       s->part[TRAIN].x, c->columns, d->columns, d->target);
    if (s->part[TEST].x[0] && s->part[TEST].csv.columns != c->columns)
        return err_set(err, ERR_INVALID, "%s: columns: %d, expected %d as in %s", s->part[TEST].x,
                       s->part[TEST].csv.columns, c->columns, s->part[TRAIN].x);
    s->layout = (struct data_layout){.train_items = c->rows,
                                     .test_items = s->part[TEST].csv.rows,
                                     .rows = 1,
                                     .cols = 1,
                                     .channels = c->columns - d->columns,
                                     .floats = 1,
                                     .values = d->values ? d->columns : 0};
    return 0;
}

static int load_csv(const struct source *s, const struct files *f, const struct data_part *to,
                    struct err *err)
{
    const struct data_spec *d = s->o.spec;
    struct csv_target t = {.x = to->x,
                           .labels = to->labels,
                           .values = to->values,
                           .first = first_column(d, &f->csv),
                           .width = d->columns};

    return csv_load(f->x, d->header, &f->csv, &t, err);
}

/* ---- NPY ---- */

/* (n, h, w), (n, c, h, w), or (n, values): what one input is. */
static void input_of(const struct npy *n, struct data_layout *l)
{
    l->rows = n->dims > 2 ? (int32_t)n->dim[n->dims - 2] : 1;
    l->cols = n->dims > 2 ? (int32_t)n->dim[n->dims - 1] : 1;
    l->channels = n->dims == 2 || n->dims == 4 ? (int32_t)n->dim[1] : 1;
    l->floats = n->type != NPY_U8;
}

static int check_targets(const struct source *s, const struct files *f, struct err *err)
{
    const struct npy *y = &f->npy_y;

    if (y->dim[0] != f->npy_x.dim[0])
        return err_set(err, ERR_INVALID, "%s: shape: %lld targets, expected %lld as %s has inputs", f->y,
                       (long long)y->dim[0], (long long)f->npy_x.dim[0], f->x);
    if (y->dims > (s->o.spec->values ? 2 : 1))
        return err_set(err, ERR_INVALID, "%s: shape: %d dimensions, expected (n)%s", f->y, y->dims,
                       s->o.spec->values ? " or (n, values)" : " of labels");
    return 0;
}

static int check_test(const struct source *s, struct err *err)
{
    const struct files *train = &s->part[TRAIN], *test = &s->part[TEST];
    const size_t bytes = sizeof(train->npy_x.dim) - sizeof(train->npy_x.dim[0]);

    if (test->npy_x.type != train->npy_x.type ||
        memcmp(test->npy_x.dim + 1, train->npy_x.dim + 1, bytes) != 0)
        return err_set(err, ERR_INVALID, "%s: expected inputs of the type and shape of those in %s", test->x,
                       train->x);
    if (memcmp(test->npy_y.dim + 1, train->npy_y.dim + 1, bytes) != 0)
        return err_set(err, ERR_INVALID, "%s: expected targets of the shape of those in %s", test->y,
                       train->y);
    return 0;
}

static int open_npy(struct source *s, struct err *err)
{
    for (int p = 0; p < PARTS; p++) {
        struct files *f = &s->part[p];
        if (!f->x[0])
            continue;
        if (npy_probe(f->x, &f->npy_x, err) || npy_probe(f->y, &f->npy_y, err) || check_targets(s, f, err))
            return -1;
    }
    const struct npy *x = &s->part[TRAIN].npy_x;
    if (x->dims < 2)
        return err_set(err, ERR_INVALID,
                       "%s: shape: 1 dimension, expected (n, values), (n, h, w) or (n, c, h, w)",
                       s->part[TRAIN].x);
    if (s->part[TEST].x[0] && check_test(s, err))
        return -1;
    input_of(x, &s->layout);
    s->layout.train_items = x->dim[0];
    s->layout.test_items = s->part[TEST].x[0] ? s->part[TEST].npy_x.dim[0] : 0;
    if (s->o.spec->values) {
        const struct npy *y = &s->part[TRAIN].npy_y;
        s->layout.values = y->dims == 2 ? (int32_t)y->dim[1] : 1;
    }
    return 0;
}

/* Samples of (channels, pixels) become (pixels, channels), in place. */
static int channels_last(const struct data_layout *l, uint8_t *x, int64_t items, struct err *err)
{
    size_t width = l->floats ? sizeof(float) : 1;
    size_t pixels = (size_t)l->rows * (size_t)l->cols;
    size_t channels = (size_t)l->channels;
    size_t bytes = layout_input_len(l) * width;

    if (channels == 1 || pixels == 1)
        return 0;
    cleanup_free uint8_t *sample = malloc(bytes);
    if (!sample)
        return err_set(err, ERR_FATAL, "no memory for a sample of %zu bytes", bytes);
    for (int64_t i = 0; i < items; i++, x += bytes) {
        memcpy(sample, x, bytes);
        for (size_t c = 0; c < channels; c++)
            for (size_t p = 0; p < pixels; p++)
                memcpy(x + (p * channels + c) * width, sample + (c * pixels + p) * width, width);
    }
    return 0;
}

static int load_npy(const struct source *s, const struct files *f, const struct data_part *to,
                    struct err *err)
{
    const struct data_layout *l = &s->layout;

    if (npy_load(f->x, &f->npy_x, l->floats ? NPY_AS_FLOATS : NPY_AS_BYTES, to->x, err) ||
        channels_last(l, to->x, to->items, err))
        return -1;
    return l->values ? npy_load(f->y, &f->npy_y, NPY_AS_FLOATS, to->values, err)
                     : npy_load(f->y, &f->npy_y, NPY_AS_LABELS, to->labels, err);
}

/* ---- synthetic ---- */

static int open_synthetic(struct source *s)
{
    const struct data_spec *d = s->o.spec;

    s->layout = (struct data_layout){.train_items = d->items,
                                     .rows = d->rows,
                                     .cols = d->cols,
                                     .channels = d->channels,
                                     .floats = 1,
                                     .values = d->values ? d->synthetic.outputs : 0};
    return 0;
}

static int load_synthetic(const struct source *s, struct dataset *d, struct err *err)
{
    struct torch_rng g;

    torch_rng_seed(&g, s->o.seed);
    return synthetic_make(&s->o.spec->synthetic, &g, d, err);
}

/* ---- tokens ---- */

static int open_tokens(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;

    for (int p = 0; p < PARTS; p++) {
        struct files *f = &s->part[p];
        if (f->x[0] && !(f->tokens = tokens_open(f->x, d->rows, err)))
            return -1;
    }
    s->layout =
        (struct data_layout){.train_items = tokens_windows(s->part[TRAIN].tokens),
                             .test_items = s->part[TEST].tokens ? tokens_windows(s->part[TEST].tokens) : 0,
                             .rows = d->rows,
                             .cols = 1,
                             .channels = 1,
                             .steps = d->rows};
    return 0;
}

static void show_tokens(const struct source *s, struct dataset *d)
{
    d->train.tokens = s->part[TRAIN].tokens;
    d->test.tokens = s->part[TEST].tokens;
    d->layout.classes = tokens_vocab(d->train.tokens);
}

/* ---- all ---- */

static int open_format(struct source *s, struct err *err)
{
    switch (s->o.spec->format) {
    case SOURCE_IDX:
        return open_idx(s, err);
    case SOURCE_CSV:
        return open_csv(s, err);
    case SOURCE_NPY:
        return open_npy(s, err);
    case SOURCE_SYNTHETIC:
        return open_synthetic(s);
    case SOURCE_TOKENS:
        return open_tokens(s, err);
    }
    return -1;
}

struct source *source_open(const struct source_options *o, struct err *err)
{
    cleanup_source struct source *s = calloc(1, sizeof(*s));

    if (!s) {
        err_set(err, ERR_FATAL, "no memory to open the data set");
        return NULL;
    }
    s->o = *o;
    if (paths(s, err) || open_format(s, err) || layout_check(&s->layout, err))
        return NULL;
    return TAKE(s);
}

void source_free(struct source *s)
{
    for (int p = 0; s && p < PARTS; p++)
        tokens_free(s->part[p].tokens);
    free(s);
}

const struct data_layout *source_layout(const struct source *s)
{
    return &s->layout;
}

static int load_part(const struct source *s, const struct files *f, const struct data_part *to,
                     struct err *err)
{
    if (!to->items)
        return 0;
    return s->o.spec->format == SOURCE_CSV ? load_csv(s, f, to, err) : load_npy(s, f, to, err);
}

static int32_t classes_of(const struct data_part *p, int32_t most)
{
    for (int64_t i = 0; p->labels && i < p->items; i++)
        if (p->labels[i] >= most)
            most = p->labels[i] + 1;
    return most;
}

int source_load(const struct source *s, struct dataset *d, struct err *err)
{
    bool family = !s->o.spec->train; /* MNIST's */
    int rc = 0;

    switch (s->o.spec->format) {
    case SOURCE_IDX:
        rc = dataset_load(&s->idx, d, family ? DATASET_CLASSES : UINT8_MAX + 1, err);
        break;
    case SOURCE_CSV:
    case SOURCE_NPY:
        rc = load_part(s, &s->part[TRAIN], &d->train, err) || load_part(s, &s->part[TEST], &d->test, err) ? -1
                                                                                                          : 0;
        break;
    case SOURCE_SYNTHETIC:
        rc = load_synthetic(s, d, err);
        break;
    case SOURCE_TOKENS:
        show_tokens(s, d);
        return 0;
    }
    if (!rc)
        d->layout.classes = classes_of(&d->test, classes_of(&d->train, 0));
    return rc;
}
