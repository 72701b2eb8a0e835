/* cleanup.h - free local variables at the end of their scope (GCC's cleanup attribute), and TAKE to hand them
 * over before.
 */
#ifndef TK_COMMON_CLEANUP_H
#define TK_COMMON_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_freep(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_fclosep(FILE **f)
{
    if (*f)
        fclose(*f);
}

static inline void cleanup_closep(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* Close a descriptor, which becomes -1. */
static inline void close_fd(int *fd)
{
    cleanup_closep(fd);
    *fd = -1;
}

static inline void cleanup_closedirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

#define cleanup_free __attribute__((cleanup(cleanup_freep)))
#define cleanup_fclose __attribute__((cleanup(cleanup_fclosep)))
#define cleanup_close __attribute__((cleanup(cleanup_closep))) /* int fd; -1 is none */
#define cleanup_closedir __attribute__((cleanup(cleanup_closedirp)))

/* Hand an owned pointer over: yields its value and sets it to NULL. */
#define TAKE(p)                                                                                              \
    ({                                                                                                       \
        __typeof__(p) taken_ = (p);                                                                          \
        (p) = NULL;                                                                                          \
        taken_;                                                                                              \
    })

/* The same for a file descriptor, which becomes -1. */
#define TAKE_FD(fd)                                                                                          \
    ({                                                                                                       \
        int taken_ = (fd);                                                                                   \
        (fd) = -1;                                                                                           \
        taken_;                                                                                              \
    })

#define MUST_CHECK __attribute__((warn_unused_result))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
