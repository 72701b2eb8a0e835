/* error_writer.c - write why a rank failed as the JSON file that torchrun reads (TORCHELASTIC_ERROR_FILE). */
#include "trainer/run/error_writer.h"

#include "common/contract.h"
#include "common/fsutil.h"
#include "common/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { ERROR_FILE_BYTES = 8192 };

#define HEAD "{\"message\":{\"message\":"
#define TAIL ",\"errorCode\":%d,\"extraInfo\":{\"py_callstack\":\"\",\"timestamp\":\"%lld\"}}}\n"

int error_writer_encode(const char *message, int exit_code, int64_t wall_ms, struct buf *out, struct err *err)
{
    return buf_puts(out, HEAD, err) || json_write_string(message, out, err) ||
                   buf_printf(out, err, TAIL, exit_code, (long long)(wall_ms / 1000))
               ? -1
               : 0;
}

int error_writer_write(const char *path, const char *message, int exit_code, int64_t wall_ms, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(ERROR_FILE_BYTES);

    if (error_writer_encode(message, exit_code, wall_ms, &text, err))
        return -1;
    return fs_write_atomic(path, buf_str(&text), text.len, err);
}

/* Writes in place, without a rename: the launcher reads the file only after the rank has ended. */
void error_writer_exhausted(void *path)
{
    char text[160];
    const int len = snprintf(text, sizeof(text), HEAD "\"out of memory\"" TAIL, EXIT_CODE_RETRYABLE,
                             (long long)time(NULL));
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const ssize_t sent = fd >= 0 ? write(fd, text, (size_t)len) : 0;

    (void)sent; /* the message is also on stderr */
}
