/* layout.h - the layout of a data set in one block of memory: training inputs and targets, then test inputs
 * and targets. Data formats, kept.c and pod_data.c use it.
 *
 * Processes that map the same memory exchange the layout, and so see the same arrays.
 *
 * Shapes:    an input is (rows, cols, channels); a vector is (1, 1, n), a sequence of tokens (n, 1, 1). Its target is a
 *            label, `steps` labels, or `values` numbers. Every rank maps sequences from their files
 *            (tokens.h), so the block does not contain them.
 * Ownership: the caller owns the memory; a view borrows it.
 * Errors:    layout_check: ERR_INVALID names the field. The other functions require a layout that has passed
 *            it. */
#ifndef TK_TRAINER_DATA_LAYOUT_H
#define TK_TRAINER_DATA_LAYOUT_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAYOUT_SIDE_MAX = 65536, LAYOUT_VALUES_MAX = 65536, LAYOUT_LABEL_MAX = (1 << 24) - 1 };
#define LAYOUT_BYTES_MAX ((size_t)1 << 40) /* of all together */

struct data_layout {
    int64_t train_items, test_items; /* 1..INT32_MAX, 0..INT32_MAX */
    int32_t rows, cols, channels;
    int32_t floats;  /* inputs are 1: float, 0: one byte each */
    int32_t values;  /* numbers per target; 0: it is a label */
    int32_t steps;   /* labels per target: one per step of a sequence; 0: one */
    int32_t classes; /* labels are below it; 0: values or tokens. source_load sets it. */
};

struct tokens;

struct data_part {
    int64_t items;
    void *x;                     /* (items, rows, cols, channels) */
    int32_t *labels;             /* (items); NULL with values */
    float *values;               /* (items, values); NULL with labels */
    const struct tokens *tokens; /* instead of x, labels and values; the source owns them */
};

struct dataset {
    struct data_layout layout;
    struct data_part train, test;
};

int layout_check(const struct data_layout *l, struct err *err) MUST_CHECK;

static inline size_t layout_input_len(const struct data_layout *l)
{
    return (size_t)l->rows * (size_t)l->cols * (size_t)l->channels;
}

/* Compare field by field, without padding. */
bool layout_same(const struct data_layout *a, const struct data_layout *b);

/* Bytes of the whole block: 0 for sequences. */
size_t layout_bytes(const struct data_layout *l);

/* The arrays in it; every one begins at a multiple of 64 bytes of `mem`. */
struct dataset layout_view(const struct data_layout *l, void *mem);

#endif
