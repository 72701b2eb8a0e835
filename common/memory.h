/* memory.h - how a process ends that gets no memory: a line on stderr, and the code that calls for another try.
 *
 * abort() would be exit code 134, a program's own mistake and the end of a job; a machine that is short of memory now may have
 * some later. What is broken, whoever tries again, still aborts.
 *
 * Threads: whichever finds it ends them all. Nothing is flushed, freed or removed, as with abort().
 * Plugins: each has a copy of its own, which has nothing more to tell.
 */
#ifndef TK_COMMON_MEMORY_H
#define TK_COMMON_MEMORY_H

/* "PROGRAM: out of memory", then _exit(EXIT_CODE_RETRYABLE). It allocates nothing, and a stderr that nobody reads holds it
 * up for a second at most. */
_Noreturn void memory_exhausted(void);

/* What memory_exhausted calls behind its line, to tell somebody else: it must neither allocate nor wait. For the whole process,
 * since the end may come anywhere: main says so before there are threads. */
void memory_tell(void (*tell)(void *ctx), void *ctx);

/* What an allocator gave, or memory_exhausted(). Not for sizes of 0. */
static inline void *memory_must(void *p)
{
    if (!p)
        memory_exhausted();
    return p;
}

#endif
