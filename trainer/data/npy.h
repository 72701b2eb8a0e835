/* npy.h - find the tokens, a vector of uint16, in a mapped NumPy .npy file. tokens.c calls it.
 *
 * Format: numpy.lib.format, versions 1 to 3; little-endian. Other contents are refused by name.
 * Errors: ERR_INVALID ("<path>: <field>: <value>, expected ...").
 */
#ifndef TK_TRAINER_DATA_NPY_H
#define TK_TRAINER_DATA_NPY_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

/* `file` has `bytes` bytes: *ret_count elements begin at *ret_first and end with the file. */
int npy_vector(const char *path, const void *file, size_t bytes, size_t *ret_first, int64_t *ret_count,
               struct err *err) MUST_CHECK;

#endif
