/* first_bytes.h - name a file of another format than the one that was expected by its first bytes.
 *
 * Errors: first_bytes_refuse returns -1 always: ERR_INVALID "<path>: <what it is>, expected <expected>", or *err as it was
 *         when the bytes say nothing.
 */
#ifndef TK_TRAINER_DATA_FIRST_BYTES_H
#define TK_TRAINER_DATA_FIRST_BYTES_H

#include "common/err.h"

#include <stddef.h>

enum { FIRST_BYTES_NAME = 80 };

/* Stand-ins are compressed files and Git LFS pointers, which are no text to train on either. */
enum first_bytes { FIRST_BYTES_UNKNOWN, FIRST_BYTES_OTHER, FIRST_BYTES_STAND_IN };

/* Pure. "a web page ...", "JSON ...", "gzip-compressed ...": printable. */
enum first_bytes first_bytes_name(const void *bytes, size_t len, char out[static FIRST_BYTES_NAME]);

/* Looks into the file, inflated when it is gzip-compressed. */
int first_bytes_refuse(const char *path, const char *expected, struct err *err);

#endif
