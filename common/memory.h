/* memory.h - end the process when memory is exhausted: a line on stderr, and the exit code for which a job
 * restarts.
 *
 * abort() would give exit code 134, which counts as a bug of the program and ends the job. Memory that is
 * short now may be free later. Errors that a restart does not fix still abort.
 *
 * Threads:   any thread may end the process. Nothing is flushed, freed or removed, as with abort().
 *
 * Plugins:   each has its own copy of this file; memory_on_exhausted in one has no effect on the program's.
 */
#ifndef TK_COMMON_MEMORY_H
#define TK_COMMON_MEMORY_H

#include <string.h>

/* Write "PROGRAM: out of memory", then _exit(EXIT_CODE_RETRYABLE). Allocates nothing. It waits at most a
 * second for a stderr that nobody reads. */
_Noreturn void memory_exhausted(void);

/* Set a function that memory_exhausted calls after its line, to inform other processes. It must neither
 * allocate nor block. For the whole process: main sets it before it starts threads. */
void memory_on_exhausted(void (*report)(void *ctx), void *ctx);

/* Returns p, or calls memory_exhausted() for NULL. Not for sizes of 0, for which an allocator may return
 * NULL. */
static inline void *memory_must(void *p)
{
    if (!p)
        memory_exhausted();
    return p;
}

/* A copy of `text`, for free(); NULL for NULL. */
static inline char *memory_strdup(const char *text)
{
    return text ? (char *)memory_must(strdup(text)) : NULL;
}

#endif
