/* report.c - write the launcher's JSON report for Kubernetes' termination message. */
#include "launcher/report.h"
#include "common/fsutil.h"
#include "common/memory.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char END[] = "\"}\n", END_HUNG[] = "\",\"noProgress\":true}\n";

/* Encode a byte for a JSON string, in at most two bytes. A progress bar's states become lines, other control characters spaces. */
static int escape(char c, char out[static 2])
{
    out[0] = '\\';
    c = c == '\r' ? '\n' : c;
    out[1] = c == '\n' ? 'n' : c;
    if (c == '\n' || c == '"' || c == '\\')
        return 2;
    out[0] = (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
    return 1;
}

/* The length of s without white space at its end. */
static size_t trimmed(const char *s, size_t len)
{
    while (len && strchr(" \t\r\n", s[len - 1]))
        len--;
    return len;
}

/* Choose the text for "message": the tail, up to the line with the rank's own message if it left one. */
static void useful(const char *tail, const char *message, const char **text, size_t *len)
{
    size_t first = message ? trimmed(message, strcspn(message, "\n")) : 0;
    const char *line = first ? memmem(tail, strlen(tail), message, first) : NULL;

    *text = tail;
    *len = strlen(tail);
    if (line)
        *len = (size_t)(line - tail) + strcspn(line, "\n");
    else if (first) {
        *text = message;
        *len = strlen(message);
    }
    *len = trimmed(*text, *len);
}

static size_t escaped(char c)
{
    char out[2];

    return (size_t)escape(c, out);
}

/* The offset from which the rest of the text fits into `room` encoded bytes: at the start of a line if possible. */
static size_t begin_of_end(const char *text, size_t len, size_t room)
{
    const size_t from = text_end(text, len, room, escaped);
    const char *line = from ? memchr(text + from, '\n', len - from) : NULL;

    return line ? (size_t)(line - text) + 1 : from;
}

static void put_text(struct buf *out, const char *text, size_t len)
{
    struct err full;
    char bytes[2];

    for (size_t i = 0; i < len; i++)
        if (buf_append(out, bytes, (size_t)escape(text[i], bytes), &full) < 0)
            return;
}

void report_encode(const struct exit_worker *w, const char *host, const char *tail, struct buf *out)
{
    while (((unsigned char)*tail & 0xc0) == 0x80) /* it begins within a character */
        tail++;
    cleanup_free char *plain = memory_strdup(tail);
    const char *text;
    size_t len;
    struct err full;
    int rc = buf_printf(out, &full, "{\"rank\":%d,\"exitCode\":%d", w->rank, exit_status_code(w->status));

    if (rc == 0 && WIFSIGNALED(w->status))
        rc = buf_printf(out, &full, ",\"signal\":%d", WTERMSIG(w->status));
    if (rc == 0)
        rc = buf_puts(out, ",\"host\":\"", &full);
    put_text(out, host, strlen(host));
    if (rc == 0)
        rc = buf_puts(out, "\",\"message\":\"", &full);
    text_plain(plain);
    useful(plain, w->message, &text, &len);
    size_t from = begin_of_end(text, len, REPORT_BYTES - sizeof(END_HUNG) - out->len);
    put_text(out, text + from, len - from);
    if (rc < 0 || buf_puts(out, w->hung ? END_HUNG : END, &full) < 0)
        buf_clear(out); /* unreachable: host names are short */
}

int report_write(const char *path, const struct buf *text, struct err *err)
{
    struct stat st;
    /* O_NONBLOCK: do not wait for a reader if the file is a FIFO. */
    cleanup_close int fd =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %.200s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%.200s: expected a regular file", path);
    if (st.st_size > 0)
        return 0;
    if (fs_write_all(fd, text->data, text->len) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %.200s", path);
    return 0;
}
