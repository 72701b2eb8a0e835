/* termination.c - write the launcher's JSON report for Kubernetes' termination message. */
#include "launcher/termination.h"
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

/* Encode a byte for a JSON string, in at most two bytes: "\r" of a progress bar as a newline, other control
 * characters as spaces. */
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

/* s without white space at its end. */
static struct sv trimmed(const char *s, size_t len)
{
    while (len && strchr(" \t\r\n", s[len - 1]))
        len--;
    return (struct sv){s, len};
}

/* Choose the text for "message": the tail, up to the line with the message of the error file, if there is
 * one. */
static struct sv useful(const char *tail, const char *message)
{
    const struct sv first = trimmed(message ? message : "", message ? strcspn(message, "\n") : 0);
    const char *line = first.len ? memmem(tail, strlen(tail), first.p, first.len) : NULL;

    if (line)
        return trimmed(tail, (size_t)(line - tail) + strcspn(line, "\n"));
    return first.len ? trimmed(message, strlen(message)) : trimmed(tail, strlen(tail));
}

static size_t escaped(char c)
{
    char out[2];

    return (size_t)escape(c, out);
}

/* The longest end of the text that fits into `room` encoded bytes, from the start of a line if possible. */
static struct sv end_of(struct sv text, size_t room)
{
    const size_t from = text_end(text.p, text.len, room, escaped);
    const char *line = from ? memchr(text.p + from, '\n', text.len - from) : NULL;

    return sv_skip(text, line ? (size_t)(line - text.p) + 1 : from);
}

static void put_text(struct buf *out, struct sv text)
{
    char bytes[2];

    for (size_t i = 0; i < text.len; i++)
        buf_append(out, bytes, (size_t)escape(text.p[i], bytes), NULL);
}

void termination_encode(const struct exit_worker *w, const char *host, const char *tail, struct buf *out)
{
    while (((unsigned char)*tail & 0xc0) == 0x80) /* it begins in the middle of a character */
        tail++;
    cleanup_free char *plain = memory_strdup(tail);

    buf_printf(out, NULL, "{\"rank\":%d,\"exitCode\":%d", w->rank, exit_status_code(w->status));
    if (WIFSIGNALED(w->status))
        buf_printf(out, NULL, ",\"signal\":%d", WTERMSIG(w->status));
    buf_puts(out, ",\"host\":\"", NULL);
    put_text(out, sv_from(host));
    buf_puts(out, "\",\"message\":\"", NULL);
    text_plain(plain);
    put_text(out, end_of(useful(plain, w->message), TERMINATION_BYTES - sizeof(END_HUNG) - out->len));
    buf_puts(out, w->hung ? END_HUNG : END, NULL); /* it fits: host names are short */
}

int termination_write(const char *path, const struct buf *text, struct err *err)
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
