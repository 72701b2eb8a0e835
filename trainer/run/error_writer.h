/* error_writer.h - write the error of a failed rank to the file that its launcher reads
 * (TORCHELASTIC_ERROR_FILE). main.c calls it.
 *
 * Errors: ERR_FATAL (cannot write; code = errno).
 */
#ifndef TK_TRAINER_RUN_ERROR_WRITER_H
#define TK_TRAINER_RUN_ERROR_WRITER_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdint.h>

/* {"message":{"message":...,"errorCode":...,"extraInfo":{"py_callstack":"","timestamp":"<seconds>"}}}, as
 * torch.distributed.elastic writes it. exit_code: with what the rank will exit. Pure. */
int error_writer_encode(const char *message, int exit_code, int64_t wall_ms, struct buf *out,
                        struct err *err) MUST_CHECK;

/* Write the error "out of memory" without allocating: a handler for memory_on_exhausted; `path` is the file's
 * path. */
void error_writer_exhausted(void *path);

int error_writer_write(const char *path, const char *message, int exit_code, int64_t wall_ms,
                       struct err *err) MUST_CHECK;

#endif
