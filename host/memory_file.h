/* memory_file.h - memory files (memfd) of a launcher, which its ranks open through /proc:
 * CONTRACT_ENV_KEPT_DATA and CONTRACT_ENV_RANK_STATE. The ranks inherit no descriptor.
 */
#ifndef TK_HOST_MEMORY_FILE_H
#define TK_HOST_MEMORY_FILE_H

#include "common/cleanup.h"
#include "common/sv.h"

enum { MEMORY_FILE_BYTES = 24 }; /* "PID/NUMBER" */

/* Create a writable file of zeros that never shrinks under a mapping; no process can add other seals. bytes
 * 0: it is empty and can grow; else its size is fixed. Returns its descriptor, which the caller closes, and
 * sets `where` to the argument for memory_file_open. -1: memory files are forbidden. */
int memory_file_make(const char *name, size_t bytes, char where[static MEMORY_FILE_BYTES]) MUST_CHECK;

/* Open "PID/NUMBER", a file of this name that memory_file_make created in a process that still has it open.
 * Returns a descriptor for reading and writing. -1: no such file. */
int memory_file_open(const char *name, struct sv where) MUST_CHECK;

#endif
