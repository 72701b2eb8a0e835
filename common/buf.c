/* buf.c - bounded growable bytes. */
#include "common/buf.h"
#include "common/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make room for `extra` more bytes and the NUL. */
static int buf_reserve(struct buf *b, size_t extra, struct err *err)
{
    if (!err && b->full)
        return -1;
    if (extra > b->max - b->len) {
        b->full |= !err;
        return err ? err_set(err, ERR_INVALID, "more than %zu bytes", b->max) : -1;
    }
    size_t need = b->len + extra + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap ? b->cap : 256;
    while (cap < need)
        cap *= 2;
    if (cap > b->max) /* never more than the limit */
        cap = b->max + 1;
    char *p = memory_must(realloc(b->data, cap));
    b->data = p;
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *bytes, size_t len, struct err *err)
{
    if (buf_reserve(b, len, err) < 0)
        return -1;
    if (len)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *s, struct err *err)
{
    return buf_append(b, s, strlen(s), err);
}

int buf_printf(struct buf *b, struct err *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (buf_reserve(b, len < 0 ? SIZE_MAX : (size_t)len, err) < 0)
        return -1;
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)len + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)len;
    return 0;
}

int buf_check(const struct buf *b, struct err *err)
{
    return b->full ? err_set(err, ERR_INVALID, "more than %zu bytes", b->max) : 0;
}

void buf_consume(struct buf *b, size_t len)
{
    if (len > b->len)
        abort();
    if (!len)
        return;
    memmove(b->data, b->data + len, b->len - len + 1);
    b->len -= len;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->full = false;
    if (b->data)
        b->data[0] = '\0';
}

void buf_release(struct buf *b)
{
    free(b->data);
    b->data = NULL;
    b->len = 0;
    b->cap = 0;
    b->full = false;
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}
