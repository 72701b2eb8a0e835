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

/* ThreadSanitizer's own start calls these, before it can learn of memory that they read. */
#define NOT_WATCHED __attribute__((no_sanitize("thread")))

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
NOT_WATCHED static bool strike(void)
{
    if (!writes || calls++ != injected.at || injected.what == INJECT_NOTHING)
        return false;
    if (injected.struck)
        *injected.struck = true;
    if (injected.what == INJECT_DEATH)
        raise(SIGKILL);
    errno = injected.error;
    return true;
}

int setpriority(__priority_which_t which, id_t who, int prio)
{
    writes = true;
    return (int)syscall(SYS_setpriority, which, who, prio);
}

NOT_WATCHED ssize_t write(int fd, const void *p, size_t len)
{
    return len >= FEWEST_BYTES && strike() ? -1 : syscall(SYS_write, fd, p, len);
}

int fsync(int fd)
{
    if (writes && injected.fsync)
        injected.fsync(fsyncs++);
    return strike() ? -1 : (int)syscall(SYS_fsync, fd);
}

int mkdir(const char *path, mode_t mode)
{
    return strike() ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int mkdirat(int fd, const char *path, mode_t mode)
{
    return strike() ? -1 : (int)syscall(SYS_mkdirat, fd, path, mode);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return strike() ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int unlinkat(int fd, const char *path, int flags)
{
    return strike() ? -1 : (int)syscall(SYS_unlinkat, fd, path, flags);
}

NOT_WATCHED void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (injected.refused && len == injected.refused) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

NOT_WATCHED ssize_t read(int fd, void *p, size_t len)
{
    if (len == sizeof(struct signalfd_siginfo)) {
        const int count = polls++;
        if (injected.poll)
            injected.poll(count);
    }
    return syscall(SYS_read, fd, p, len);
}
