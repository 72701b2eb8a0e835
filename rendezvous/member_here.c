/* member_here.c - decide by bind() whether an address belongs to this machine. */
#include "host/resolve.h"
#include "rendezvous/member.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Bind to port 0, because the store's port may be taken. */
static bool can_bind(const struct addrinfo *at)
{
    struct sockaddr_storage addr = {0};
    cleanup_close int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || at->ai_addrlen > sizeof(addr))
        return false;
    memcpy(&addr, at->ai_addr, at->ai_addrlen);
    if (addr.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&addr)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&addr)->sin_port = 0;
    return bind(fd, (struct sockaddr *)&addr, at->ai_addrlen) == 0;
}

bool member_host_is_here(struct resolver *host, int64_t deadline_ms)
{
    struct addrinfo *all = NULL;
    bool here = false;

    if (resolver_ask(host, deadline_ms, &all) <= 0)
        return false;
    for (const struct addrinfo *at = all; at && !here; at = at->ai_next)
        here = can_bind(at);
    freeaddrinfo(all);
    return here;
}
