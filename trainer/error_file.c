/* error_file.c - one JSON object about one failure. */
#include "trainer/error_file.h"

#include "common/fsutil.h"

enum { ERROR_FILE_BYTES = 8192 };

static int put_escaped(const char *s, struct buf *out, struct err *err)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        int rc;
        if (c == '"' || c == '\\')
            rc = buf_printf(out, err, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            rc = buf_printf(out, err, "\\u%04x", c);
        else
            rc = buf_append(out, s, 1, err);
        if (rc)
            return -1;
    }
    return 0;
}

int error_file_encode(const char *message, int64_t wall_ms, struct buf *out, struct err *err)
{
    return buf_puts(out, "{\"message\":{\"message\":\"", err) || put_escaped(message, out, err) ||
                   buf_printf(out, err, "\",\"extraInfo\":{\"py_callstack\":\"\",\"timestamp\":\"%lld\"}}}\n",
                              (long long)(wall_ms / 1000))
               ? -1
               : 0;
}

int error_file_write(const char *path, const char *message, int64_t wall_ms, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(ERROR_FILE_BYTES);

    if (error_file_encode(message, wall_ms, &text, err))
        return -1;
    return fs_write_atomic(path, buf_str(&text), text.len, err);
}
