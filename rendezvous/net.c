/* net.c - TCP sockets between pods. */
#include "rendezvous/net.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

void net_tune(int fd, int64_t lost_ms, bool strict)
{
    const int on = 1, probes = 3, each_s = lost_ms > 3000000 ? 1000 : (int)(lost_ms / 1000 / probes);
    const unsigned most_ms = lost_ms < INT_MAX ? (unsigned)lost_ms : INT_MAX;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &each_s, sizeof(each_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each_s, sizeof(each_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    if (strict)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof(most_ms));
}

/* A dual-stack socket; IPv4 only when the kernel has no IPv6. */
int net_listen(int port, int *ret_port, struct err *err)
{
    const int on = 1, off = 0;
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in addr4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t len = sizeof(addr);
    cleanup_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool v6 = fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0;

    if (fd < 0)
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot create a socket");
    if (port)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    int rc = v6 ? bind(fd, (struct sockaddr *)&addr, sizeof(addr))
                : bind(fd, (struct sockaddr *)&addr4, sizeof(addr4));
    if (rc < 0 || listen(fd, SOMAXCONN) < 0 || getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return err_errno(err, errno == EADDRINUSE ? ERR_CONFLICT : ERR_FATAL, errno,
                         "cannot listen at port %d", port);
    *ret_port = ntohs(addr.sin6_port); /* sin_port has the same offset */
    return TAKE_FD(fd);
}

bool net_address(const struct sockaddr *from, uint8_t addr[static 16])
{
    if (from->sa_family == AF_INET6) {
        memcpy(addr, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
        return true;
    }
    memcpy(addr, mapped, sizeof(mapped));
    memcpy(addr + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    return from->sa_family == AF_INET;
}

int net_accept(int listener, uint8_t addr[static 16])
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    const int fd = accept4(listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

    net_address((struct sockaddr *)&from, addr);
    return fd;
}

int net_connect(const uint8_t addr[16], int port)
{
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const bool v4 = memcmp(addr, mapped, sizeof(mapped)) == 0;

    memcpy(&to6.sin6_addr, addr, 16);
    memcpy(&to4.sin_addr, addr + 12, 4);
    cleanup_close int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int rc = v4 ? connect(fd, (struct sockaddr *)&to4, sizeof(to4))
                : connect(fd, (struct sockaddr *)&to6, sizeof(to6));
    return rc < 0 && errno != EINPROGRESS ? -1 : TAKE_FD(fd);
}

int net_connected(int fd)
{
    int code = 0;
    socklen_t len = sizeof(code);

    if (net_wait(fd, POLLOUT, 0) <= 0)
        return 0;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0 || code ? -1 : 1;
}

bool net_peer(int fd, uint8_t addr[16])
{
    struct sockaddr_storage got = {0};
    socklen_t len = sizeof(got);

    return getpeername(fd, (struct sockaddr *)&got, &len) == 0 && net_address((struct sockaddr *)&got, addr);
}

bool net_is_loopback(const uint8_t addr[16])
{
    static const uint8_t one[16] = {[15] = 1};

    return memcmp(addr, one, 16) == 0 || (memcmp(addr, mapped, sizeof(mapped)) == 0 && addr[12] == 127);
}

int net_wait(int fd, short events, int ms)
{
    struct pollfd pfd = {.fd = fd, .events = events};
    int n = poll(&pfd, 1, ms);

    return n > 0 ? 1 : n;
}
