/* error_file.h - read the error file, in which a rank writes the exception that ended it (PyTorch's @record,
 * this project's trainer), and copy it to the error file of a parent launcher. agent_report.c calls it.
 *
 * The file is JSON, {"message": {"message": "ValueError: ...", "extraInfo": {"py_callstack": "Traceback ...",
 * "timestamp": "1700000000"}}}, perhaps with "errorCode" beside "extraInfo", or {"message": "...",
 * "timestamp": 1700000000}.
 *
 * Ownership: texts are in the caller's arena.
 * Errors:    a missing file, one larger than ERROR_FILE_BYTES or of another form gives no texts. */
#ifndef TK_LAUNCHER_ERROR_FILE_H
#define TK_LAUNCHER_ERROR_FILE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "launcher/exit.h"

#include <stdint.h>

/* ERROR_FILE_TRACEBACK_BYTES: a little more than the report shows, so that it can tell when a traceback was
 * truncated. */
enum {
    ERROR_FILE_BYTES = 1 << 20,
    ERROR_FILE_MESSAGE_BYTES = 4000,
    ERROR_FILE_TRACEBACK_BYTES = EXIT_TRACEBACK_BYTES + 4
};

/* The texts are valid UTF-8, without control characters but newlines, and not empty. */
struct error_file {
    const char *message;   /* at most ERROR_FILE_MESSAGE_BYTES of it; NULL: none */
    const char *traceback; /* the last ERROR_FILE_TRACEBACK_BYTES of it; NULL: none */
    int64_t wall_ms;       /* the file's timestamp of the failure; 0: none */
    int exit_code;         /* with what the rank will exit: "errorCode", 1 to 255; 0: it does not say */
};

struct error_file error_file_read(const char *path, struct arena *a);

/* Replace `to` by the error file `from`. As PyTorch's launcher does, set "errorCode" of its message to the
 * exit code (-n: signal n); copy a message that is a string unchanged. If `from` has no message, `to` is
 * unchanged. If `to` is not a regular file (a device, a FIFO, a link), append the text to it, without waiting
 * for a reader. */
int error_file_pass(const char *from, const char *to, int exit_code, struct err *err) MUST_CHECK;

#endif
