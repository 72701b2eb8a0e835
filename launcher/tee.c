/* tee.c - split a teed stream into lines for the console and for the file of filtered lines. */
#include "launcher/tee.h"
#include "common/fsutil.h"

#include <string.h>

enum { KEPT_BYTES = 64 * 1024 }; /* memory that a stream keeps between lines */

static bool wanted(const struct tee_out *out, const struct buf *text)
{
    for (const char *const *f = out->filters; f && *f; f++)
        if (memmem(buf_str(text), text->len, *f, strlen(*f)))
            return true;
    return false;
}

static void put_line(struct buf *to, const struct tee_out *out, const struct buf *text)
{
    struct err full;

    if (buf_puts(to, out->prefix, &full) < 0 || buf_append(to, buf_str(text), text->len, &full) < 0 ||
        buf_puts(to, "\n", &full) < 0)
        return;
}

void tee_clear(struct tee_line *line)
{
    if (line->text.cap > KEPT_BYTES)
        buf_release(&line->text);
    buf_clear(&line->text);
    line->returned = false;
}

/* A full disk must not stop the training, so a failed write loses its bytes. */
static void keep_filtered(const struct tee_out *out, const struct buf *text)
{
    cleanup_buf struct buf whole = BUF_INIT(strlen(out->prefix) + text->len + 1);

    if (out->filtered < 0 || !wanted(out, text))
        return;
    put_line(&whole, out, text);
    if (fs_write_all(out->filtered, whole.data, whole.len) < 0)
        return;
}

/* Output a complete line. */
static void put(struct tee_line *line, const struct tee_out *out)
{
    if (out->sink && (line->text.len || !line->returned))
        put_line(out->sink, out, &line->text);
    keep_filtered(out, &line->text);
    tee_clear(line);
}

void tee_flush(struct tee_line *line, const struct tee_out *out)
{
    if (line->text.len)
        put(line, out);
    tee_clear(line);
}

/* Take bytes up to a line's end or to the end of the buffer; returns how many. */
static size_t take_some(struct tee_line *line, const struct tee_out *out, const char *bytes, size_t len)
{
    const char *newline = memchr(bytes, '\n', len);
    const size_t before = newline ? (size_t)(newline - bytes) : len;
    const char *end = memchr(bytes, '\r', before);
    size_t n = end ? (size_t)(end - bytes) : before;
    struct err full;

    end = end ? end : newline;
    if (n > line->text.max - line->text.len)
        n = line->text.max - line->text.len, end = NULL;
    if (n && buf_append(&line->text, bytes, n, &full) < 0)
        return len;
    if (end && *end == '\r')
        line->returned = true;
    else if (end)
        put(line, out);
    else if (line->text.len == line->text.max)
        tee_flush(line, out);
    return n + (end != NULL);
}

void tee_take(struct tee_line *line, const struct tee_out *out, const char *bytes, size_t len)
{
    while (len) {
        size_t n;
        if (line->returned && *bytes != '\n') {
            put(line, out);
            continue;
        }
        line->returned = false;
        n = take_some(line, out, bytes, len);
        bytes += n;
        len -= n;
    }
}

size_t tee_room(const struct tee_line *line, const struct buf *sink, const char *prefix)
{
    const size_t each = strlen(prefix) + 2, free_bytes = sink->max - sink->len;
    const size_t fixed = line->text.max + 2 * each;

    return free_bytes <= fixed ? 0 : (free_bytes - fixed) / each;
}
