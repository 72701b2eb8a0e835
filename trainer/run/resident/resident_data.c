/* resident_data.c - copy a rank's part of a data set into a GPU's memory, once. */
#include "trainer/run/resident/resident_data.h"

#include "kernels/device.h"

#include <stdlib.h>

enum { DECODE_AT_ONCE = 256 };

void *resident_copied(struct kctx *ctx, const void *from, size_t bytes, struct err *err)
{
    void *p = device_alloc(ctx, bytes, err);

    if (p)
        device_put(ctx, p, from, bytes);
    return p;
}

static int take_table(struct resident_data *d, struct kctx *ctx, const struct feed *f, struct err *err)
{
    size_t n = (size_t)f->stats * 256;
    cleanup_free float *table = calloc(n, sizeof(*table));

    if (!table)
        return err_memory(err, "no memory for a table of %zu values", n);
    feed_byte_table(f, table);
    d->gather.table = resident_copied(ctx, table, n * sizeof(*table), err);
    return d->gather.table ? 0 : -1;
}

/* Copy floats, decoded first. */
static int take_floats(struct resident_data *d, struct kctx *ctx, const struct feed *f, struct err *err)
{
    struct feed all = *f;
    cleanup_free float *x = calloc(DECODE_AT_ONCE * f->len, sizeof(*x));
    cleanup_free int32_t *labels = calloc(DECODE_AT_ONCE * (size_t)f->labels, sizeof(*labels));
    cleanup_free float *values =
        calloc(DECODE_AT_ONCE * (size_t)(f->values ? f->values : 1), sizeof(*values));
    uint32_t place[DECODE_AT_ONCE];
    float *to = device_alloc(ctx, (size_t)f->part.items * f->len * sizeof(*to), err);

    d->gather.floats = to;
    if (!to)
        return -1;
    if (!x || !labels || !values)
        return err_memory(err, "no memory for %d samples", DECODE_AT_ONCE);
    all.subset = NULL;
    for (int64_t done = 0; done < f->part.items; done += DECODE_AT_ONCE) {
        int64_t n = f->part.items - done < DECODE_AT_ONCE ? f->part.items - done : DECODE_AT_ONCE;
        for (int64_t i = 0; i < n; i++)
            place[i] = (uint32_t)(done + i);
        if (feed_batch(&all, place, n, x, &(struct feed_targets){labels, values}, err))
            return -1;
        device_put(ctx, to + (size_t)done * f->len, x, (size_t)n * f->len * sizeof(*x));
    }
    return 0;
}

static int take_part(struct resident_data *d, struct kctx *ctx, const struct feed *f, struct err *err)
{
    size_t items = (size_t)f->part.items;
    struct gather *g = &d->gather;

    *g = (struct gather){.len = f->len, .stats = f->stats, .value_len = f->values};
    if (f->floats ? take_floats(d, ctx, f, err)
                  : take_table(d, ctx, f, err) ||
                        !(g->bytes = resident_copied(ctx, f->part.x, items * f->len, err)))
        return -1;
    if (f->values)
        g->values = resident_copied(ctx, f->part.values, items * (size_t)f->values * sizeof(float), err);
    else
        g->labels = resident_copied(ctx, f->part.labels, items * sizeof(int32_t), err);
    return g->values || g->labels ? 0 : -1;
}

int resident_data_open(struct resident_data *d, struct kctx *ctx, const struct feed *f, struct err *err)
{
    if (d->of == f->part.x)
        return 0;
    resident_data_close(d, ctx);
    if (take_part(d, ctx, f, err)) {
        resident_data_close(d, ctx);
        return -1;
    }
    d->of = f->part.x;
    return 0;
}

void resident_data_close(struct resident_data *d, struct kctx *ctx)
{
    struct gather *g = &d->gather;
    const void *all[] = {g->bytes, g->floats, g->table, g->labels, g->values};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        device_free(ctx, (void *)(uintptr_t)all[i]);
    *d = (struct resident_data){0};
}
