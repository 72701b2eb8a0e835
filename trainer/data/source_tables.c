/* source_tables.c - read samples from tables of numbers: the lines of a CSV file, the rows of a NumPy array. */
#include "trainer/data/source_parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- CSV ---- */

static int32_t first_column(const struct data_spec *d, const struct csv *c)
{
    return d->target < 0 ? c->columns + d->target : d->target;
}

int source_open_csv(struct source *s, struct err *err)
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

int source_load_csv(const struct source *s, const struct files *f, const struct data_part *to,
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

int source_open_npy(struct source *s, struct err *err)
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
        return err_memory(err, "no memory for a sample of %zu bytes", bytes);
    for (int64_t i = 0; i < items; i++, x += bytes) {
        memcpy(sample, x, bytes);
        for (size_t c = 0; c < channels; c++)
            for (size_t p = 0; p < pixels; p++)
                memcpy(x + (p * channels + c) * width, sample + (c * pixels + p) * width, width);
    }
    return 0;
}

int source_load_npy(const struct source *s, const struct files *f, const struct data_part *to,
                    struct err *err)
{
    const struct data_layout *l = &s->layout;

    if (npy_load(f->x, &f->npy_x, l->floats ? NPY_AS_FLOATS : NPY_AS_BYTES, to->x, err) ||
        channels_last(l, to->x, to->items, err))
        return -1;
    return l->values ? npy_load(f->y, &f->npy_y, NPY_AS_FLOATS, to->values, err)
                     : npy_load(f->y, &f->npy_y, NPY_AS_LABELS, to->labels, err);
}
