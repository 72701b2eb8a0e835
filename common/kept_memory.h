/* kept_memory.h - the memory file that a launcher keeps over restarts of its ranks: CONTRACT_ENV_KEPT_DATA names it. */
#ifndef TK_COMMON_KEPT_MEMORY_H
#define TK_COMMON_KEPT_MEMORY_H

#include "common/cleanup.h"

enum { KEPT_MEMORY_BYTES = 24 }; /* "PID/NUMBER" */

/* Make an empty one, which can grow and be written, and never shrink under a mapping; nobody can seal it otherwise. Returns
 * its descriptor, which the caller closes, and the variable's value in `where`; -1 where memory files are forbidden. */
int kept_memory_make(char where[static KEPT_MEMORY_BYTES]) MUST_CHECK;

#endif
