/* first_bytes.h - name a file of another format than the one that was expected by its first bytes.
 *
 * Errors: first_bytes_refuse returns -1 always: ERR_INVALID "<path>: <what it is>, expected <expected>", or *err as it was
 *         when the bytes say nothing.
 */
#ifndef TK_TRAINER_DATA_FIRST_BYTES_H
#define TK_TRAINER_DATA_FIRST_BYTES_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { FIRST_BYTES_NAME = 80 };

/* Pure. "a web page ...", "JSON", "gzip-compressed": printable. False: they say nothing. */
bool first_bytes_name(const void *bytes, size_t len, char out[static FIRST_BYTES_NAME]);

/* Of these are compressed files and Git LFS pointers, which are no text to train on either. */
bool first_bytes_stand_in(const void *bytes, size_t len);

/* Looks into the file, inflated when it is gzip-compressed. */
int first_bytes_refuse(const char *path, const char *expected, struct err *err);

#endif
