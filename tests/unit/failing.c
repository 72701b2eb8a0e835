/* failing.c - a malloc that counts. */
#include "failing.h"
#include "common/contract.h"
#include "sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANGS_S = 600 };

#if !defined(__GLIBC__) || SANITIZED

int failing_skip(void)
{
    puts("skipped: the allocator is not glibc's own");
    return 77;
}

void failing_begin(void)
{
}

void failing_try(long n, int64_t (*run)(void *ctx), void *ctx, struct failing_end *ret)
{
    (void)n, (void)run, (void)ctx;
    *ret = (struct failing_end){0};
}

#else

static long asked;        /* by failing_try, of its child */
static long left;         /* allocations until one fails; 0: none does */
static _Atomic long kept; /* a parent may have threads */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *p);

static bool refused(void)
{
    if (left == 0 || --left != 0)
        return false;
    errno = ENOMEM;
    return true;
}

static void *counted(void *p)
{
    kept += p != NULL;
    return p;
}

void *malloc(size_t size)
{
    return refused() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return refused() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
    if (refused())
        return NULL;
    void *p = __libc_realloc(old, size);
    if (!old)
        kept += p != NULL;
    else if (!p && size == 0)
        kept--;
    return p;
}

void free(void *p)
{
    kept -= p != NULL;
    __libc_free(p);
}

int failing_skip(void)
{
    return 0;
}

void failing_begin(void)
{
    left = asked;
    kept = 0;
}

static void child(long n, int64_t (*run)(void *ctx), void *ctx, int fd)
{
    struct failing_end end = {0};

    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (!freopen("/dev/null", "w", stderr)) /* a line for each of some thousand children */
        _exit(1);
    (void)alarm(HANGS_S);
    asked = n;
    end.value = run(ctx);
    end.kept = kept;
    end.struck = n && left == 0;
    _exit(write(fd, &end, sizeof(end)) == sizeof(end) ? 0 : 1);
}

void failing_try(long n, int64_t (*run)(void *ctx), void *ctx, struct failing_end *ret)
{
    int fds[2], status;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(n, run, ctx, fds[1]);
    close(fds[1]);
    ssize_t got = read(fds[0], ret, sizeof(*ret));
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CODE_RETRYABLE)
        *ret = (struct failing_end){.struck = true, .exhausted = true};
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || got != sizeof(*ret))
        fail_msg("allocation %ld: status %#x, neither a return nor EXIT_CODE_RETRYABLE", n, (unsigned)status);
}

#endif
