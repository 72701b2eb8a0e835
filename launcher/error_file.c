/* error_file.c - read the file in which a rank left the exception that it died of, and hand it on. */
#include "launcher/error_file.h"
#include "common/fsutil.h"
#include "common/sv.h"
#include "common/text.h"

#include <ctype.h>
#include <string.h>

static const char SPACES[] = " \t\r\n";
static const int64_t LATEST_S = 253402300799; /* the year 9999 */

/* Where the value of the first member `quoted` ("\"name\"") at or after `p` begins; NULL: there is none. Inside a
 * string its quotes would be escaped. */
static const char *value_of(const char *p, const char *quoted)
{
    while ((p = strstr(p, quoted))) {
        p += strlen(quoted);
        p += strspn(p, SPACES);
        if (*p == ':')
            return p + 1 + strspn(p + 1, SPACES);
    }
    return NULL;
}

/* The content of the first such member that is a string. */
static const char *string_of(const char *text, const char *quoted)
{
    const char *p = text;

    while ((p = value_of(p, quoted)))
        if (*p == '"')
            return p + 1;
    return NULL;
}

/* Four hexadecimal digits; -1: they are none. */
static int unit(const char *p)
{
    int n = 0;

    for (int i = 0; i < 4; i++) {
        const int c = tolower((unsigned char)p[i]);
        if (!isxdigit(c))
            return -1;
        n = n * 16 + (isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return n;
}

/* Append a character as UTF-8: '?' for half of a surrogate pair. */
static char *put_character(char *out, uint32_t c)
{
    if (c < 0x80)
        *out++ = (char)c;
    else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c >= 0xd800 && c < 0xe000)
        *out++ = '?';
    else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* Decode \uXXXX at *p, behind the u, with the low half of a pair that follows; moves *p behind it. */
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

/* Nothing that moves a terminal's cursor: controls become spaces, those of two bytes (C1) too. */
static void disarm(char *s)
{
    for (; *s; s++)
        if (*s != '\n' && iscntrl((unsigned char)*s))
            *s = ' ';
        else if ((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0)
            s[0] = s[1] = ' ';
}

/* Decode the JSON string whose content begins at `p`; one that is cut ends where the text ends. */
static char *decode(const char *p, struct arena *a)
{
    char *out = arena_alloc(a, strlen(p) + 1), *at = out; /* nothing grows */

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
    text_mend(out);
    disarm(out);
    return out;
}

/* NULL also for an empty one: the trainer has no traceback. */
static char *decode_string(const char *text, const char *quoted, struct arena *a)
{
    const char *content = string_of(text, quoted);
    char *decoded = content ? decode(content, a) : NULL;

    return decoded && *decoded ? decoded : NULL;
}

/* Seconds, as a number or as a string. */
static int64_t time_of(const char *text)
{
    const char *p = value_of(text, "\"timestamp\"");
    int64_t s;

    if (!p)
        return 0;
    p += *p == '"';
    return sv_i64((struct sv){p, strspn(p, "0123456789")}, 1, LATEST_S, &s) ? s * 1000 : 0;
}

struct error_file error_file_read(const char *path, struct arena *a)
{
    cleanup_buf struct buf text = BUF_INIT(ERROR_FILE_BYTES);
    struct err ignored;

    if (fs_read_regular(path, &text, &ignored) < 0) /* the rank may have put a FIFO or a device there */
        return (struct error_file){0};
    char *message = decode_string(buf_str(&text), "\"message\"", a);
    if (message)
        message[text_head(message, ERROR_FILE_MESSAGE_BYTES)] = '\0';
    return (struct error_file){.message = message,
                               .traceback = decode_string(buf_str(&text), "\"py_callstack\"", a),
                               .wall_ms = time_of(buf_str(&text))};
}

int error_file_pass(const char *from, const char *to, int exit_code, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(ERROR_FILE_BYTES), out = BUF_INIT(ERROR_FILE_BYTES + 64);
    struct err ignored;

    if (fs_read_regular(from, &text, &ignored) < 0 || !string_of(buf_str(&text), "\"message\""))
        return 0;
    /* Of an object; one that a launcher below has passed on has its code already. */
    const char *object = value_of(buf_str(&text), "\"message\"");
    const size_t head =
        *object == '{' && !value_of(buf_str(&text), "\"errorCode\"") ? (size_t)(object + 1 - text.data) : 0;
    if (buf_append(&out, text.data, head, err) < 0 ||
        (head && buf_printf(&out, err, "\"errorCode\": %d, ", exit_code) < 0) ||
        buf_append(&out, text.data + head, text.len - head, err) < 0)
        return -1;
    return fs_write_atomic(to, out.data, out.len, err);
}
