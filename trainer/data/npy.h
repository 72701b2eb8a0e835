/* npy.h - read NumPy's .npy arrays, gzip-compressed or not, as inputs or targets of a data set.
 *
 * Format:    numpy.lib.format, versions 1 to 3. Taken: uint8, uint16, int32, int64, float32, float64; little-endian, in C
 *            order, 1 to 4 dimensions. Refused by name: everything else.
 * Ownership: the caller gives the memory; nothing is kept.
 * Errors:    ERR_NOT_FOUND (no such file), ERR_INVALID ("<path>: <field>: <value>, expected ..."; elements by their
 *            number from 0), ERR_FATAL (cannot read).
 */
#ifndef TK_TRAINER_DATA_NPY_H
#define TK_TRAINER_DATA_NPY_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

enum npy_type { NPY_U8, NPY_U16, NPY_I32, NPY_I64, NPY_F32, NPY_F64 };
enum { NPY_DIMS_MAX = 4 };

struct npy {
    enum npy_type type;
    int32_t dims;
    int64_t dim[NPY_DIMS_MAX]; /* each 1..INT32_MAX */
    int64_t count;             /* their product, at most NPY_COUNT_MAX */
    size_t data;               /* where in the file, uncompressed, the first element is */
};
#define NPY_COUNT_MAX ((int64_t)1 << 38)

/* Read the header alone. A file that is too small for its shape is refused here. */
int npy_probe(const char *path, struct npy *ret, struct err *err) MUST_CHECK;

enum npy_as {
    NPY_AS_BYTES,  /* uint8_t; the file must hold uint8 */
    NPY_AS_FLOATS, /* float; each element must be finite as one */
    NPY_AS_LABELS, /* int32_t; whole numbers 0..LAYOUT_LABEL_MAX, from integers only */
};

/* Convert all elements of a file that still has the header `n` into dst (n->count of them). */
int npy_load(const char *path, const struct npy *n, enum npy_as as, void *dst, struct err *err) MUST_CHECK;

#endif
