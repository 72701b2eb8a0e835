/* error_file.c - read a rank's error file, and copy it to a parent launcher's. */
#include "launcher/error_file.h"
#include "common/fsutil.h"
#include "common/sv.h"
#include "common/text.h"
#include "launcher/members.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const int64_t LATEST_S = 253402300799; /* the year 9999 */

/* The last member of that name ("\"name\"") of an object; empty: none, or `value` is no object. */
static struct sv member(struct sv value, const char *quoted)
{
    const char *p = sv_starts(value, "{") ? value.p + 1 : "";
    struct json_member m;
    struct sv found = {"", 0};

    while (members_next(&p, &m))
        found = sv_eq(m.name, quoted) ? m.value : found;
    return found;
}

/* The file's member "message": the text, or an object with it. */
static struct sv message_of(const struct buf *text)
{
    return member(sv_trim(sv_from(buf_str(text))), "\"message\"");
}

static struct sv text_of(struct sv message)
{
    return sv_starts(message, "{") ? member(message, "\"message\"") : message;
}

/* Parse four hexadecimal digits; -1: not hexadecimal. */
static int unit(const char *p)
{
    char digits[5] = "";

    strncat(digits, p, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int)strtol(digits, NULL, 16) : -1;
}

/* Append a character as UTF-8: '?' for half of a surrogate pair. */
static char *put_character(char *out, uint32_t c)
{
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes behind the first */
    static const unsigned char FIRST[] = {0, 0xc0, 0xe0, 0xf0};

    if (c >= 0xd800 && c < 0xe000) {
        *out++ = '?';
        return out;
    }
    *out++ = (char)(FIRST[more] | c >> 6 * more);
    for (int i = more - 1; i >= 0; i--)
        *out++ = (char)(0x80 | (c >> 6 * i & 0x3f));
    return out;
}

/* Decode \uXXXX, where *p is after the u, with a low surrogate that follows; moves *p past it. */
static uint32_t escaped(const char **p)
{
    const int high = unit(*p);

    if (high < 0)
        return '?';
    *p += 4;
    if (high < 0xd800 || high >= 0xdc00 || (*p)[0] != '\\' || (*p)[1] != 'u')
        return (uint32_t)high;
    const int low = unit(*p + 2);
    if (low < 0xdc00 || low >= 0xe000)
        return (uint32_t)high;
    *p += 6;
    return 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
}

/* Replace control characters, those of two bytes (C1) too, by spaces, so that no text moves a terminal's
 * cursor. */
static void disarm(char *s)
{
    for (; *s; s++)
        if (*s != '\n' && iscntrl((unsigned char)*s))
            *s = ' ';
        else if ((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0)
            s[0] = s[1] = ' ';
}

/* Decode the JSON string whose content begins at `p`; a truncated one ends where the text ends. */
static char *decode(const char *p, struct arena *a)
{
    char *out = arena_alloc(a, strlen(p) + 1), *at = out; /* decoding never makes it longer */

    while (*p && *p != '"') {
        if (*p != '\\') {
            *at++ = *p++;
            continue;
        }
        const char kind = *++p;
        if (!kind)
            break;
        p++;
        if (kind == 'u')
            at = put_character(at, escaped(&p));
        else
            *at++ = kind == 'n' ? '\n' : strchr("tbfr", kind) ? ' ' : kind;
    }
    for (char *nul = out; nul < at; nul++)
        *nul = *nul ? *nul : ' ';
    text_plain(out);
    disarm(out);
    return out;
}

/* Decode a string; NULL if it is none or empty (the trainer has no traceback). */
static char *decode_string(struct sv value, struct arena *a)
{
    char *decoded = sv_starts(value, "\"") ? decode(value.p + 1, a) : NULL;

    return decoded && *decoded ? decoded : NULL;
}

/* The timestamp in seconds, a number or a string. */
static int64_t time_of(struct sv value)
{
    const char *p = value.p + sv_starts(value, "\"");
    int64_t s;

    return sv_i64((struct sv){p, strspn(p, "0123456789")}, 1, LATEST_S, &s) ? s * 1000 : 0;
}

struct error_file error_file_read(const char *path, struct arena *a)
{
    cleanup_buf struct buf text = BUF_INIT(ERROR_FILE_BYTES);
    cleanup_arena struct arena whole = {0};
    struct err ignored;

    if (fs_read_regular(path, &text, &ignored) < 0) /* the path may be a FIFO or a device */
        return (struct error_file){0};
    const struct sv whole_message = message_of(&text);
    const struct sv more = sv_starts(whole_message, "{") ? member(whole_message, "\"extraInfo\"")
                                                         : sv_trim(sv_from(buf_str(&text)));
    const char *message = decode_string(text_of(whole_message), &whole);
    const char *traceback = decode_string(member(more, "\"py_callstack\""), &whole);
    int64_t code = 0;

    (void)sv_i64(sv_trim(member(whole_message, "\"errorCode\"")), 1, UINT8_MAX, &code);
    return (struct error_file){
        .message = message ? arena_strndup(a, message, text_head(message, ERROR_FILE_MESSAGE_BYTES)) : NULL,
        .traceback = traceback ? arena_strdup(a, text_tail(traceback, ERROR_FILE_TRACEBACK_BYTES).p) : NULL,
        .wall_ms = time_of(member(more, "\"timestamp\"")),
        .exit_code = (int)code};
}

/* Set "errorCode" to the exit code in the message, if the message is an object. */
static void put_coded(const struct buf *text, struct sv message, int exit_code, struct buf *out)
{
    const bool is_object = sv_starts(message, "{");
    const struct sv code = member(message, "\"errorCode\"");
    const char *cut = code.len ? code.p : message.p + is_object, *rest = cut + code.len;

    buf_append(out, text->data, (size_t)(cut - text->data), NULL);
    if (is_object)
        buf_printf(out, NULL, code.len ? "%d" : "\"errorCode\": %d, ", exit_code);
    buf_append(out, rest, text->len - (size_t)(rest - text->data), NULL);
}

/* Append to an existing file that is not regular: a device, a FIFO, or a link. */
static int write_into(const char *path, const struct buf *text, struct err *err)
{
    /* O_NONBLOCK: do not wait for a reader. O_APPEND: /dev/stderr may be a link to a file with content. */
    cleanup_close int fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 || fs_write_all(fd, text->data, text->len) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %.200s", path);
    return 0;
}

int error_file_pass(const char *from, const char *to, int exit_code, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(ERROR_FILE_BYTES), out = BUF_INIT(ERROR_FILE_BYTES + 64);
    struct err ignored;
    struct stat st;

    if (fs_read_regular(from, &text, &ignored) < 0 || !sv_starts(text_of(message_of(&text)), "\""))
        return 0;
    put_coded(&text, message_of(&text), exit_code, &out); /* it has room for it */
    if (lstat(to, &st) == 0 && !S_ISREG(st.st_mode))
        return write_into(to, &out, err);
    return fs_write_atomic(to, out.data, out.len, err);
}
