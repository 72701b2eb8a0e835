/* memory_file.h - memory files (memfd) of a launcher, which its ranks open by their name: CONTRACT_ENV_KEPT_DATA and
 * CONTRACT_ENV_RANK_STATE. No descriptor is inherited.
 */
#ifndef TK_HOST_MEMORY_FILE_H
#define TK_HOST_MEMORY_FILE_H

#include "common/cleanup.h"
#include "common/sv.h"

enum { MEMORY_FILE_BYTES = 24 }; /* "PID/NUMBER" */

/* Make one of zeros, which can be written, and never shrinks under a mapping; nobody can seal it otherwise. bytes 0: it is
 * empty and can grow; else it keeps its size. Returns its descriptor, which the caller closes, and what memory_file_open
 * takes in `where`; -1 where memory files are forbidden. */
int memory_file_make(const char *name, size_t bytes, char where[static MEMORY_FILE_BYTES]) MUST_CHECK;

/* Open "PID/NUMBER", a file of this name that memory_file_make made in a process that still has it. Returns a descriptor
 * for reading and writing; -1: there is none. */
int memory_file_open(const char *name, struct sv where) MUST_CHECK;

#endif
