/* idx.h - read IDX files (MNIST's format), gzip-compressed or not. formats/idx.c calls it.
 *
 * Ownership: the caller owns the memory; nothing is kept after a call.
 * Units:     one byte per pixel or label.
 * Errors:    ERR_NOT_FOUND (no such file), ERR_INVALID ("<path>: <field>: <value>, expected ..."), ERR_FATAL
 *            (cannot read). A file with fewer or more bytes than its header says is refused.
 */
#ifndef TK_TRAINER_DATA_IDX_H
#define TK_TRAINER_DATA_IDX_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

enum idx_kind { IDX_LABELS = 2049, IDX_IMAGES = 2051 }; /* the magic numbers */

struct idx_shape {
    int32_t items;
    int32_t rows; /* labels: 1 */
    int32_t cols; /* labels: 1 */
};

enum { IDX_SIDE_MAX = 65536 };          /* rows and cols */
#define IDX_BYTES_MAX ((size_t)1 << 31) /* of one file's payload */

/* Read the header alone. */
int idx_probe(const char *path, enum idx_kind kind, struct idx_shape *ret, struct err *err) MUST_CHECK;

size_t idx_bytes(const struct idx_shape *shape);

/* Read the payload of a file that still has `shape`; dst holds idx_bytes(shape). On failure dst is undefined.
 */
int idx_load(const char *path, enum idx_kind kind, const struct idx_shape *shape, uint8_t *dst,
             struct err *err) MUST_CHECK;

#endif
