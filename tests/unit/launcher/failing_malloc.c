/* failing_malloc.c - a library to preload: the FAIL_AT-th allocation of the program or its libraries fails, and the file
 * FAIL_SAYS is then created. With FAIL_AT=0 none fails, and FAIL_SAYS gets their number at the end. glibc only. Programs that
 * this one starts do not get it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static _Atomic long seen;
static long fail_at;
static int says = -1;

/* Before main: what allocated until now does not count. */
__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT");
    const char *path = getenv("FAIL_SAYS");

    fail_at = at ? strtol(at, NULL, 10) : 0;
    says = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    unsetenv("LD_PRELOAD");
    unsetenv("FAIL_AT");
    unsetenv("FAIL_SAYS");
    seen = 0;
}

static void tell(long n)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%ld\n", n);

    if (says >= 0 && write(says, text, (size_t)len) < 0)
        _exit(121); /* the test's own folder */
}

__attribute__((destructor)) static void end(void)
{
    if (!fail_at)
        tell(seen);
}

static int refused(void)
{
    if (++seen != fail_at)
        return 0;
    tell(fail_at);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return refused() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return refused() ? NULL : __libc_memalign(alignment, size);
}
