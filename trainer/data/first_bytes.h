/* first_bytes.h - identify a file of an unexpected format by its first bytes, for the error messages of
 * idx.c, npy.c, tokens.c and state/weights/weights.c.
 *
 * Errors: first_bytes_refuse always returns -1: ERR_INVALID "<path>: <format>, expected <expected>", or *err
 *         unchanged if the bytes are not recognised.
 */
#ifndef TK_TRAINER_DATA_FIRST_BYTES_H
#define TK_TRAINER_DATA_FIRST_BYTES_H

#include "common/err.h"

#include <stddef.h>

enum { FIRST_BYTES_NAME = 80 };

/* Stand-ins are compressed files and Git LFS pointers: also not usable as text to train on. */
enum first_bytes { FIRST_BYTES_UNKNOWN, FIRST_BYTES_OTHER, FIRST_BYTES_STAND_IN };

/* Pure. "a web page ...", "JSON ...", "gzip-compressed ...": printable. */
enum first_bytes first_bytes_name(const void *bytes, size_t len, char out[static FIRST_BYTES_NAME]);

/* Reads the begin of the file, after inflating it if it is gzip-compressed. */
int first_bytes_refuse(const char *path, const char *expected, struct err *err);

#endif
