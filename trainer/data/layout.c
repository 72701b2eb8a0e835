/* layout.c - compute where each array of a data set begins in its block of memory. */
#include "trainer/data/layout.h"

#include <inttypes.h>

enum { ALIGN = 64 };

static int check(const char *field, int64_t v, int64_t min, int64_t max, struct err *err)
{
    if (v >= min && v <= max)
        return 0;
    return err_set(err, ERR_INVALID, "data: %s: %" PRId64 ", expected %" PRId64 "..%" PRId64, field, v, min,
                   max);
}

/* A product of up to 31 + 3 * 17 + 2 bits, which cannot overflow in floating point. */
static double about_bytes(const struct data_layout *l)
{
    if (l->steps)
        return 0;
    double input = (double)l->rows * l->cols * l->channels * (l->floats ? 4 : 1);
    double target = 4.0 * (l->values ? l->values : 1);

    return (input + target) * ((double)l->train_items + (double)l->test_items) + 4 * ALIGN;
}

int layout_check(const struct data_layout *l, struct err *err)
{
    if (check("training samples", l->train_items, 1, INT32_MAX, err) ||
        check("test samples", l->test_items, 0, INT32_MAX, err) ||
        check("rows", l->rows, 1, LAYOUT_SIDE_MAX, err) ||
        check("columns", l->cols, 1, LAYOUT_SIDE_MAX, err) ||
        check("channels", l->channels, 1, 1 << 24, err) ||
        check("values of a target", l->values, 0, LAYOUT_VALUES_MAX, err))
        return -1;
    if (l->steps && (l->steps != l->rows || l->cols != 1 || l->channels != 1 || l->values))
        return err_set(err, ERR_INVALID, "data: a sequence of %" PRId32 " tokens, expected as many rows",
                       l->steps);
    if (about_bytes(l) > (double)LAYOUT_BYTES_MAX)
        return err_set(err, ERR_INVALID, "data: about %.0f bytes, expected at most %zu", about_bytes(l),
                       LAYOUT_BYTES_MAX);
    return 0;
}

bool layout_same(const struct data_layout *a, const struct data_layout *b)
{
    return a->train_items == b->train_items && a->test_items == b->test_items && a->rows == b->rows &&
           a->cols == b->cols && a->channels == b->channels && a->floats == b->floats &&
           a->values == b->values && a->steps == b->steps && a->classes == b->classes;
}

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t x_bytes(const struct data_layout *l, int64_t items)
{
    return round_up((size_t)items * layout_input_len(l) * (l->floats ? sizeof(float) : 1));
}

static size_t y_bytes(const struct data_layout *l, int64_t items)
{
    return round_up((size_t)items * (l->values ? (size_t)l->values : 1) * sizeof(float));
}

size_t layout_bytes(const struct data_layout *l)
{
    if (l->steps)
        return 0;
    return x_bytes(l, l->train_items) + y_bytes(l, l->train_items) + x_bytes(l, l->test_items) +
           y_bytes(l, l->test_items);
}

static struct data_part part(const struct data_layout *l, int64_t items, uint8_t **at)
{
    struct data_part p = {.items = items, .x = *at};
    if (l->steps)
        return (struct data_part){.items = items};
    void *y = *at + x_bytes(l, items);

    *at = (uint8_t *)y + y_bytes(l, items);
    if (l->values)
        p.values = y;
    else
        p.labels = y;
    return p;
}

struct dataset layout_view(const struct data_layout *l, void *mem)
{
    uint8_t *at = mem;
    struct dataset d = {.layout = *l};

    d.train = part(l, l->train_items, &at);
    d.test = part(l, l->test_items, &at);
    return d;
}
