/* memory.c - end the process with 138 and a line on stderr when memory is exhausted. */
#include "common/memory.h"
#include "common/contract.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_BYTES = 96, PATIENCE_MS = 1000 };

static void (*also)(void *ctx);
static void *also_ctx;

void memory_on_exhausted(void (*report)(void *ctx), void *ctx)
{
    also = report;
    also_ctx = ctx;
}

void memory_exhausted(void)
{
    char line[LINE_BYTES];
    const int len = snprintf(line, sizeof(line), "%.64s: out of memory\n", program_invocation_short_name);
    struct pollfd to = {.fd = STDERR_FILENO, .events = POLLOUT};

    signal(SIGPIPE, SIG_IGN); /* the exit code must not become that of SIGPIPE */
    const ssize_t sent = poll(&to, 1, PATIENCE_MS) > 0 ? write(to.fd, line, (size_t)len) : 0;
    (void)sent; /* if the write failed, only the exit code reports it */
    if (also)
        also(also_ctx);
    _exit(EXIT_CODE_RETRYABLE);
}
