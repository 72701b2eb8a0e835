/* injected.c - stand-ins for the calls that write, which fail or end the process at the n-th. */
#include "injected.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FEWEST_BYTES = 128 };

struct injected injected;

static _Thread_local bool writes; /* this is the checkpoints' thread: the only one with another nice value */
static atomic_int calls, fsyncs, polls;

int injected_calls(void)
{
    return calls;
}

int injected_polls(void)
{
    return polls;
}

/* Does this call fail? */
static bool strike(bool *last)
{
    *last = writes && calls++ == injected.at && injected.what != INJECT_NOTHING;
    if (*last && injected.what == INJECT_DEATH_BEFORE)
        raise(SIGKILL);
    if (!*last || injected.what != INJECT_ERROR)
        return false;
    errno = injected.error;
    return true;
}

static void strike_behind(bool last)
{
    if (last && injected.what == INJECT_DEATH_BEHIND)
        raise(SIGKILL);
}

#define STRIKE(type, call, failed)                                                                           \
    do {                                                                                                     \
        bool last;                                                                                           \
        if (strike(&last))                                                                                   \
            return failed;                                                                                   \
        type rc = call;                                                                                      \
        strike_behind(last);                                                                                 \
        return rc;                                                                                           \
    } while (0)

int setpriority(__priority_which_t which, id_t who, int prio)
{
    writes = true;
    return (int)syscall(SYS_setpriority, which, who, prio);
}

size_t fwrite(const void *p, size_t size, size_t n, FILE *f)
{
    if (size * n < FEWEST_BYTES)
        return fwrite_unlocked(p, size, n, f);
    STRIKE(size_t, fwrite_unlocked(p, size, n, f), 0);
}

int fflush(FILE *f)
{
    STRIKE(int, fflush_unlocked(f), EOF);
}

ssize_t write(int fd, const void *p, size_t len)
{
    STRIKE(ssize_t, syscall(SYS_write, fd, p, len), -1);
}

int fsync(int fd)
{
    if (writes && injected.fsync)
        injected.fsync(fsyncs++);
    STRIKE(int, (int)syscall(SYS_fsync, fd), -1);
}

int mkdir(const char *path, mode_t mode)
{
    STRIKE(int, (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode), -1);
}

int rename(const char *from, const char *to)
{
    STRIKE(int, (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0), -1);
}

int unlinkat(int fd, const char *path, int flags)
{
    STRIKE(int, (int)syscall(SYS_unlinkat, fd, path, flags), -1);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (injected.refused && len == injected.refused) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

ssize_t read(int fd, void *p, size_t len)
{
    if (len == sizeof(struct signalfd_siginfo)) {
        const int count = polls++;
        if (injected.poll)
            injected.poll(count);
    }
    return syscall(SYS_read, fd, p, len);
}
