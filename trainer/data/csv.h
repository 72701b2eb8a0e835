/* csv.h - read CSV tables of numbers: a sample per line, its target in some of the columns.
 *
 * Format:    decimal numbers between commas; spaces around them and \r before \n do not count; empty lines are
 *            skipped; no quotes. The first line may be a header, which is skipped. Gzip-compressed or not.
 * Ownership: the caller gives the memory; nothing is kept.
 * Errors:    ERR_NOT_FOUND, ERR_INVALID ("<path>:<line>: column <n>: <text>, expected ..."; lines from 1, columns from
 *            0), ERR_FATAL (cannot read).
 */
#ifndef TK_TRAINER_DATA_CSV_H
#define TK_TRAINER_DATA_CSV_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { CSV_LINE_MAX = 1 << 20, CSV_COLUMNS_MAX = 65536 };

struct csv {
    int64_t rows;    /* 1..INT32_MAX */
    int32_t columns; /* of every row, 2..CSV_COLUMNS_MAX */
};

/* Count rows and columns. Every line must have as many columns as the first. */
int csv_probe(const char *path, bool header, struct csv *ret, struct err *err) MUST_CHECK;

/* Where the columns of a row go: those of the target to `labels` or `values` (one is NULL), the others to `x`. */
struct csv_target {
    float *x;        /* (rows, columns - width) */
    int32_t *labels; /* (rows); whole numbers 0..LAYOUT_LABEL_MAX */
    float *values;   /* (rows, width) */
    int32_t first;   /* the target's first column */
    int32_t width;
};

/* Read all rows of a file that still has the shape `c`. */
int csv_load(const char *path, bool header, const struct csv *c, const struct csv_target *to,
             struct err *err) MUST_CHECK;

#endif
