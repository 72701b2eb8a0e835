/* gzfile.h - read the bytes of a file, and inflate them if it is gzip-compressed (detected by its first two
 * bytes). idx.c and first_bytes.c call it.
 *
 * Ownership: gzfile_open to gzfile_free, which accepts NULL. `path` is borrowed.
 * Errors:    ERR_NOT_FOUND, ERR_INVALID (not a regular file, damaged or truncated gzip stream), ERR_FATAL
 *            (cannot read).
 * Format:    all members of a gzip file (RFC 1952) are concatenated; zeros after a member are skipped.
 *            Anything else there is an error, as in Python's gzip; gzip -d skips it with a warning.
 */
#ifndef TK_TRAINER_DATA_GZFILE_H
#define TK_TRAINER_DATA_GZFILE_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gzfile;

struct gzfile *gzfile_open(const char *path, struct err *err) MUST_CHECK;
void gzfile_free(struct gzfile *g);

static inline void cleanup_gzfilep(struct gzfile **g)
{
    gzfile_free(*g);
}
#define cleanup_gzfile __attribute__((cleanup(cleanup_gzfilep)))

/* Fill `dst`; *ret_len < len only at the end of the file. */
int gzfile_read(struct gzfile *g, void *dst, size_t len, size_t *ret_len, struct err *err) MUST_CHECK;

/* The most bytes that a file of its size can inflate to; exact when it is not compressed. */
uint64_t gzfile_max_bytes(const struct gzfile *g);
bool gzfile_compressed(const struct gzfile *g);

#endif
