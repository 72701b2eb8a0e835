/* memory_file.h - memory files (memfd) of a launcher, which its ranks open through /proc:
 * CONTRACT_ENV_KEPT_DATA, CONTRACT_ENV_RANK_STATE and CONTRACT_ENV_KEY_FILE. The ranks inherit no descriptor.
 */
#ifndef TK_HOST_MEMORY_FILE_H
#define TK_HOST_MEMORY_FILE_H

#include "common/cleanup.h"
#include "common/sv.h"

enum {
    MEMORY_FILE_BYTES = 24
}; /* "PID/NUMBER": the process that made it, in its PID namespace, and its descriptor there */

/* Create a writable file of `bytes` zeros that never shrinks under a mapping; no process can add other seals. With
 * bytes 0 it can grow, else its size is fixed. Returns its descriptor, which the caller closes, and sets `where` to
 * the argument for memory_file_open. -1 with errno: it could not be created, sized or sealed; where is not set. */
int memory_file_make(const char *name, size_t bytes, char where[static MEMORY_FILE_BYTES]) MUST_CHECK;

/* Open "PID/NUMBER", a file of this name that memory_file_make created in a process that still has it open.
 * Returns a descriptor for reading and writing, which the caller closes. -1: `where` is malformed, this process may
 * not open it, or the file has another name or other seals. */
int memory_file_open(const char *name, struct sv where) MUST_CHECK;

#endif
