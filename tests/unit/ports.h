/* ports.h - TCP ports for tests that run side by side and must know a port before anybody listens at it.
 *
 * Each process claims a block of ports until it ends, by a socket of the abstract namespace.
 * Tests in the same network namespace therefore never meet at a port, and no outgoing connection takes
 * one: the blocks lie below the range that the system gives out. */
#ifndef TESTS_PORTS_H
#define TESTS_PORTS_H

#include "common/cleanup.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

enum { PORTS_FIRST = 10000, PORTS_EACH = 200, PORTS_BLOCKS = 100 };

/* The block's first port. The claim is inherited by children: it ends with the last of them. */
static int ports_claim(void)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    for (int i = 0; fd >= 0 && i < PORTS_BLOCKS; i++) {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        const int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "torchkeeper-test-ports-%d", i);

        if (bind(fd, (struct sockaddr *)&at,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)len) == 0)
            return PORTS_FIRST + i * PORTS_EACH;
    }
    fail_msg("all blocks of test ports are claimed");
    return -1;
}

static bool ports_is_free(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
}

/* A port where nobody listens; port + 1 is not given to anybody either. */
static inline int ports_take(void)
{
    static int first, used;

    if (!first)
        first = ports_claim();
    for (int i = 0; i < PORTS_EACH / 2; i++) {
        const int port = first + used++ * 2 % PORTS_EACH;

        if (ports_is_free(port) && ports_is_free(port + 1))
            return port;
    }
    fail_msg("no free port from %d to %d", first, first + PORTS_EACH - 1);
    return -1;
}

/* Connections that others have to this port of 127.0.0.1. */
static inline int ports_connections(int port)
{
    cleanup_fclose FILE *f = fopen("/proc/net/tcp", "re");
    char line[256], want[32];
    int n = 0;

    assert_non_null(f);
    snprintf(want, sizeof(want), " 0100007F:%04X 01 ", (unsigned)port); /* the peer's, established */
    while (fgets(line, sizeof(line), f))
        n += strstr(line, want) != NULL;
    return n;
}

#endif
