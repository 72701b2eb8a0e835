/* error_file.h - read the file in which a rank left the exception that it died of (PyTorch's @record, this
 * project's trainer), and hand it on to whoever started the launcher.
 *
 * The file is JSON, {"message": {"message": "ValueError: ...", "extraInfo": {"py_callstack": "Traceback ...",
 * "timestamp": "1700000000"}}} or {"message": "...", "timestamp": 1700000000}. The first string of each name
 * counts, wherever it stands.
 *
 * Ownership: texts are in the caller's arena.
 * Errors:    a file that is not there, is larger than ERROR_FILE_BYTES or is not of that form has no texts.
 */
#ifndef TK_LAUNCHER_ERROR_FILE_H
#define TK_LAUNCHER_ERROR_FILE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "launcher/exit.h"

#include <stdint.h>

/* ERROR_FILE_TRACEBACK_BYTES: so much more than the report shows that it sees when a traceback was cut. */
enum {
    ERROR_FILE_BYTES = 1 << 20,
    ERROR_FILE_MESSAGE_BYTES = 4000,
    ERROR_FILE_TRACEBACK_BYTES = EXIT_TRACEBACK_BYTES + 4
};

/* The texts are valid UTF-8, without control characters but newlines, and not empty. */
struct error_file {
    const char *message;   /* at most ERROR_FILE_MESSAGE_BYTES of it; NULL: none */
    const char *traceback; /* the last ERROR_FILE_TRACEBACK_BYTES of it; NULL: none */
    int64_t wall_ms;       /* when the rank failed, by its own word; 0: not said */
};

struct error_file error_file_read(const char *path, struct arena *a);

/* Replace `to` by the error file `from`, with the exit code (-n: signal n) as "errorCode" of its message, in place of
 * one that is there, as PyTorch's launcher does; a message that is a string is passed on as it is. Without a file
 * `from` that has a message, `to` stays as it is. A `to` that is no regular file (a device, a FIFO, a link) is not
 * replaced: the text is appended to what it names, without waiting for a reader. */
int error_file_pass(const char *from, const char *to, int exit_code, struct err *err) MUST_CHECK;

#endif
