/* buf.h - a growable byte buffer with a fixed size limit.
 *
 * Ownership: buf_release frees the bytes. `data` moves when the buffer grows.
 * Errors:    beyond the limit a function returns -1 (ERR_INVALID) and does not change the buffer. With err
 *            NULL it also sets `full`: further calls with err NULL add nothing until buf_clear or
 *            buf_release, and one buf_check after the last call is enough. Out of memory ends the process
 *            (memory.h).
 * Order:     a NUL that is not counted always follows the bytes, so `data` is also a C string.
 */
#ifndef TK_COMMON_BUF_H
#define TK_COMMON_BUF_H

#include "common/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NULL until the first append that fits */
    size_t len;
    size_t cap;
    size_t max; /* limit in bytes; a zeroed buffer accepts none */
    bool full;  /* an append with err NULL did not fit */
};

#define BUF_INIT(limit)                                                                                      \
    {                                                                                                        \
        .max = (limit)                                                                                       \
    }

int buf_append(struct buf *b, const void *bytes, size_t len, struct err *err);
int buf_puts(struct buf *b, const char *s, struct err *err);
int buf_printf(struct buf *b, struct err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* -1: an append with err NULL did not fit. */
int buf_check(const struct buf *b, struct err *err);

/* Drop the first `len` bytes. Aborts if len > b->len. */
void buf_consume(struct buf *b, size_t len);

/* Remove all bytes and keep the memory. */
void buf_clear(struct buf *b);
/* Free the bytes. buf_release keeps `max`: the buffer can be used again. */
void buf_release(struct buf *b);

/* The bytes as text; "" for an empty buffer, never NULL. */
const char *buf_str(const struct buf *b);

#define cleanup_buf __attribute__((cleanup(buf_release)))

#endif
