/* error_file.h - why a rank failed, where its launcher looks for it (TORCHELASTIC_ERROR_FILE).
 *
 * Errors: ERR_FATAL (cannot write; code = errno).
 */
#ifndef TK_TRAINER_RUN_ERROR_FILE_H
#define TK_TRAINER_RUN_ERROR_FILE_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdint.h>

/* {"message":{"message":...,"extraInfo":{"py_callstack":"","timestamp":"<seconds>"}}}, as
 * torch.distributed.elastic writes it. Pure. */
int error_file_encode(const char *message, int64_t wall_ms, struct buf *out, struct err *err) MUST_CHECK;

/* To memory_tell: the same for a process that has no memory left; `path` is the file's. */
void error_file_exhausted(void *path);

int error_file_write(const char *path, const char *message, int64_t wall_ms, struct err *err) MUST_CHECK;

#endif
